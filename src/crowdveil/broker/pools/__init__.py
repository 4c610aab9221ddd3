"""Task pools: studies whose questions are rows of a list, labelled batch by batch in several sittings."""
