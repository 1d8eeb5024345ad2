"""The families of ops that are imported when one of their ops is first needed.

Most programs need few of them, and importing all takes a third of the time of ``import gradtape``
and a first op. The registry has to know the names of the ops without importing them: it refuses
what a family makes if it differs from the names here.
"""

from __future__ import annotations

__all__ = ["LATE"]

#: By family, the names of its ops.
LATE = {
    family: tuple(sorted(names.split()))
    for family, names in {
        "analysis": """
            bincount bincount_weighted convolve crop_or_pad crop_or_pad_like difference
            difference_adjoint fftn fftshift ifftn irfft
            irfft_adjoint quantile_rank rfft rfft_adjoint
        """,
        "collectives": """
            average_over_ranks begin_average_over_ranks end_average_over_ranks kept_on_rank
            rows_of_ranks rows_summed_over_ranks share_of_ranks sum_over_ranks value_of_rank
        """,
        "control": """
            assigned check cond host_call print scan while_loop
        """,
        "linalg": """
            cholesky cofactor cofactor_adjoint det eig eigh eigvals eigvalsh einsum
            einsum_adjoint expm inv matmul matmul_adjoint_x matmul_adjoint_y matrix_rank
            merge_pairs norm over_gaps pinv qr slogdet solve solve_triangular svd svdvals
            tensordot tensordot_adjoint_x tensordot_adjoint_y
        """,
        "network": """
            avg_pool avg_pool_scatter batch_norm_gradient batch_norm_training celu class_labels
            conv conv_to_filters conv_to_images conv_transpose elu embedding_rows gelu gelu_slope
            hard_shrink hard_sigmoid hard_silu hard_tanh huber leaky_relu log_sigmoid log_softmax
            lstm_gates lstm_gates_gradient max_pool max_pool_gather max_pool_scatter mish
            mish_slope one_hot relu relu6 segment_sum selu sigmoid sigmoid_cross_entropy
            sigmoid_slope silu silu_slope soft_shrink softmax softmax_cross_entropy
            softmax_less_labels softmax_less_shares softplus softsign sparse_softmax_cross_entropy
            split_channels squareplus squareplus_slope tanh_shrink
        """,
        "random": """
            random_exponential random_exponential_like random_gamma random_gamma_slope
            random_gumbel random_gumbel_like random_integers random_normal random_normal_like
            random_permutation random_split random_truncated_normal random_truncated_normal_like
            random_uniform random_uniform_like
        """,
    }.items()
}
