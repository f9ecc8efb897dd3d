"""The model behind `accurate`: how likely the matches are under a labelling, and ways to likelier ones."""
