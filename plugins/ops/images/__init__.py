"""Images, with their channels last: sizes, colours, edges and what two of them have in common."""
