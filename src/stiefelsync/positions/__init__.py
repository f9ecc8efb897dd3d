"""What coordinates say about matches: grids, neighbours, third objects, finer positions, keypoints found twice."""
