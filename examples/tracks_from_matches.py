"""Structure from motion: a dictionary of image matches in, tracks without conflicts out."""

from stiefelsync import Matchings, synchronise

# Three photographs with 3, 2 and 3 keypoints. Keypoint 0 of photograph 0 is matched to keypoint 0 of photograph 1, that
# to keypoint 0 of photograph 2 — and that, wrongly, to keypoint 1 of photograph 0: a track with two keypoints of one
# photograph, which programs that build tracks by union-find delete as a whole.
matches = {
    (0, 1): [[0, 0], [2, 1]],
    (1, 2): [[0, 0], [1, 2]],
    (0, 2): [[1, 0], [2, 2]],
}
problem = Matchings.from_pairs(matches, sizes=[3, 2, 3], names=["a.jpg", "b.jpg", "c.jpg"])
result = synchronise(problem, method="tracks")

for track in result.tracks():
    print(" – ".join(f"{problem.names[image]}:{keypoint}" for image, keypoint in track.tolist()))
for (i, j), block in result.matchings().pairs().items():
    print((i, j), block.tolist())
assert sum(len(track) for track in result.tracks()) >= 5
