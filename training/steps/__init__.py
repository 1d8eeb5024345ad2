"""What happens in one batch: the objective, the step that runs it, and the sums over batches."""
