"""Structure from motion: a dictionary of image matches in, tracks without conflicts out."""

from stiefelsync import Matchings, synchronise

# Four photographs that all show two points. One match is wrong: keypoint 2 of a.jpg is taken for keypoint 0 of c.jpg,
# which the other photographs match with keypoint 0 of a.jpg. That makes one set of connected matches with two keypoints
# of a.jpg, which programs that build tracks by union-find delete as a whole.
matches = {
    (0, 1): [[0, 0], [1, 1]],
    (0, 2): [[2, 0], [1, 1]],
    (0, 3): [[0, 0], [1, 1]],
    (1, 2): [[0, 0], [1, 1]],
    (1, 3): [[0, 0]],
    (2, 3): [[0, 0], [1, 1]],
}
problem = Matchings.from_pairs(matches, sizes=[3, 2, 2, 2], names=["a.jpg", "b.jpg", "c.jpg", "d.jpg"])

for method in ("union-find", "tracks"):
    result = synchronise(problem, method=method)
    print(f"{method}: {int(result.kept.sum())} of {problem.n_matches} matches kept, {result.difference.n_added} added")
    for track in result.tracks():
        print("   ", " – ".join(f"{problem.names[image]}:{keypoint}" for image, keypoint in track.tolist()))

assert len(result.tracks()) == 2
assert all(len(track) == 4 for track in result.tracks())
