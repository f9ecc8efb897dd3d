"""What coordinates say about matches.

Grids, neighbours, third objects, finer positions, keypoints found twice.
"""
