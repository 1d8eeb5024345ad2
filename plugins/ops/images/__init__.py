"""Images, with their channels last: sizes, colours, edges and similarity."""
