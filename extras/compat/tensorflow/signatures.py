"""Functions with TensorFlow's arguments, written as expressions in gradtape's functions.

The left side of a line is TensorFlow's call, the right side what it returns. It uses gradtape's
names, a few helpers (``convert``, ``cast``, ``plain``: see ``compiling.py``), names of this package
after ``tf.``, and ops after ``op.``. The name of an argument, or the word after its ``:``, selects
its conversion to what gradtape takes; ``raw`` arguments stay as they are. Arguments missing on the
right are ignored, and so is ``name``, which every function takes last.
"""

from __future__ import annotations

SIGNATURES: dict[str, str] = {
    "tf": """
boolean_mask(tensor, mask, axis: raw=None) =
    tensor[(slice(None),) * (axis and plain(axis) or 0) + (cast(mask, 'bool'),)]
broadcast_static_shape(shape_x, shape_y) =
    tf.TensorShape(broadcast_shapes(tuple(shape_x), tuple(shape_y)))
broadcast_to(input, shape) = broadcast_to(input, shape)
clip_by_global_norm(t_list, clip_norm, use_norm=None) =
    training.clip_by_global_norm(t_list, clip_norm, use_norm)
clip_by_norm(t, clip_norm, axes=None) = clip_by_norm(t, clip_norm, axes)
clip_by_value(t, clip_value_min, clip_value_max) = clip(t, clip_value_min, clip_value_max)
concat(values: raw, axis: whole) = op.concatenate(*values, axis=axis)
    if type(values) is list and values and all_tensors(mapped(type, values)) and type(axis) is int
    else tf.arrays.concatenated(values, axis)
dynamic_partition(data, partitions, num_partitions) =
    dynamic_partition(data, partitions, plain(num_partitions))
dynamic_stitch(indices, data: raw) = dynamic_stitch(indices, [convert(x) for x in data])
einsum(equation, *inputs, optimize=None) = einsum(equation, *inputs)
    if all_tensors(mapped(type, inputs)) else einsum(equation, *[convert(x) for x in inputs])
ensure_shape(x, shape: raw) =
    copy(x if shape is None else held_to(x, shape, 'ensure_shape'))
expand_dims(input, axis) = expand_dims(input, axis)
fill(dims, value: raw, layout=None) =
    broadcast_to(value if type(value) is float else convert(value), dims)
gather(params, indices: tensor, validate_indices=None, axis=None, batch_dims=0) =
    tf.arrays.gathered(params, indices, axis, batch_dims) if batch_dims
    else take(params, indices, 0 if axis is None else axis)
gather_nd(params, indices, batch_dims=0) =
    tf.arrays.over_batch(lambda p, i: p[tf.arrays.index_of(i)], batch_dims)
    (params, convert(indices))
identity(input) = copy(input)
identity_n(input: raw) = [copy(x) for x in input]
linspace(start: bound, stop: bound, num: sized, name=None, axis: raw=0) =
    linspace(start, stop, num, axis=axis)
meshgrid(*args, indexing='xy') = list(meshgrid(*[convert(x) for x in args], indexing=indexing))
ones(shape, dtype=tf.float32, layout=None) = ones(shape, dtype)
ones_like(input, dtype=None, layout=None) = ones_like(input, dtype)
pow(x: raw, y: raw) = power(x, y) if type(x) is Tensor or type(y) is Tensor
    else power(*together(x, y))
rank(input) = constant(np.int32(input.ndim))
repeat(input, repeats, axis=None) = repeat(input, plain(repeats), axis)
reshape(tensor, shape) = reshape(tensor, shape)
reverse(tensor, axis) = flip(tensor, axis)
roll(input, shift, axis) = roll(input, tf.arrays.shifts(axes_of(shift), axis), axis)
round(x) = round(x)
scatter_nd(indices, updates, shape) = tf.arrays.zeros_of(shape, updates)
    .at[tf.arrays.index_of(indices)].add(
    convert(tf.arrays.fitting(updates, indices, sizes(shape, called), called)))
searchsorted(sorted_sequence: tensor, values, side='left', out_type=tf.int32) =
    cast(tf.arrays.over_batch(lambda r, v: searchsorted(r, v, side), sorted_sequence.ndim - 1)
    (sorted_sequence, values), out_type)
sequence_mask(lengths: tensor, maxlen: raw=None, dtype: raw=tf.bool) =
    cast(arange(as_size(gradtape.max(lengths) if maxlen is None else maxlen, called))
    < expand_dims(lengths, -1), dtype)
shape_n(input: raw, out_type=tf.int32) = [tf.shape(x, out_type) for x in input]
squeeze(input, axis=None) = squeeze(input, axis)
stack(values: raw, axis: whole=0) = op.stack(*values, axis=axis)
    if type(values) is list and values and all_tensors(mapped(type, values)) and type(axis) is int
    else stack(tf.arrays.tensors_of(values), axis)
stop_gradient(input) = stop_gradient(input)
tensor_scatter_nd_add(tensor, indices, updates) =
    tf.arrays.scattered(tensor, called, indices, updates)
tensor_scatter_nd_max(tensor, indices, updates) =
    tf.arrays.scattered(tensor, called, indices, updates)
tensor_scatter_nd_min(tensor, indices, updates) =
    tf.arrays.scattered(tensor, called, indices, updates)
tensor_scatter_nd_sub(tensor, indices, updates) =
    tf.arrays.scattered(tensor, called, indices, updates)
tensor_scatter_nd_update(tensor, indices, updates) =
    tf.arrays.scattered(tensor, called, indices, updates)
tile(input, multiples) = tile(input, multiples)
transpose(a, perm=None, conjugate=False) =
    conj(transpose(a, perm)) if conjugate else transpose(a, perm)
split(value, num_or_size_splits, axis: whole=0, num=None) = split(value, num_or_size_splits, axis)
    if type(num_or_size_splits) is int
    else tf.arrays.split_by(value, num_or_size_splits, axis, num)
unstack(value, num=None, axis=0) = list(unstack(value, axis, num))
vectorized_map(fn, elems, fallback_to_while_loop=True, warn=True) =
    vmap(fn, randomness='different')(elems)
where(condition: raw, x: raw=None, y: raw=None) = where(condition, x, y)
    if type(x) is Tensor and y is not None else where(condition, *together(x, y))
    if x is not None and y is not None else argwhere(tf.arrays.tf_condition(condition, x, y))
zeros(shape, dtype=tf.float32, layout=None) = zeros(shape, dtype)
zeros_like(input, dtype=None, layout=None) = zeros_like(input, dtype)
""",
    "tf.math": """
accumulate_n(inputs, shape: raw=None, tensor_dtype=None) = tf.math.add_n(inputs)
angle(input) = angle(input)
argmax(input, axis=None, output_type=tf.int64) = argmax(input, 0 if axis is None else axis)
    if output_type is tf.int64 else cast(argmax(input, 0 if axis is None else axis), output_type)
argmin(input, axis=None, output_type=tf.int64) = argmin(input, 0 if axis is None else axis)
    if output_type is tf.int64 else cast(argmin(input, 0 if axis is None else axis), output_type)
conj(x) = conj(x)
count_nonzero(input, axis=None, keepdims=False, dtype=tf.int64) =
    cast(count_nonzero(input, axis, keepdims), dtype)
cumprod(x, axis=0, exclusive=False, reverse=False) =
    tf.math.running(cumprod, x, axis, exclusive, reverse, 1)
cumsum(x, axis=0, exclusive=False, reverse=False) =
    cumsum(x, axis) if x.array.dtype is tf.float32 and not (exclusive or reverse)
    else tf.math.running(cumsum, x, axis, exclusive, reverse, 0)
digamma(x) = digamma(x)
divide_no_nan(x, y) = training.shapes.ratio(x, y)
erf(x) = erf(x)
erfc(x) = erfc(x)
imag(input) = imag(input)
in_top_k(targets, predictions, k) =
    training.metrics.sparse_top_k_categorical_accuracy(targets, predictions, k)
invert_permutation(x) = cast(argsort(x), x.dtype)
l2_normalize(x, axis=None, epsilon=1e-12) =
    x / maximum(linalg.norm(x, axis=axis, keepdims=True), epsilon ** 0.5)
lgamma(x) = lgamma(x)
log_softmax(logits, axis=-1) = nn.log_softmax(logits, -1 if axis is None else axis)
multiply_no_nan(x, y) =
    where(equal(y, 0), 0, where(equal(y, 0), 0, x) * y)
polygamma(a: raw, x: raw) =
    polygamma(int(order) if type(order := plain(a)) is float and order.is_integer() else order, x)
real(input) = real(input)
reciprocal_no_nan(x) = training.shapes.ratio(ones_like(x), x)
reduce_all(input_tensor, axis=None, keepdims=False) = all(input_tensor, axis, keepdims)
reduce_any(input_tensor, axis=None, keepdims=False) = any(input_tensor, axis, keepdims)
reduce_euclidean_norm(input_tensor, axis=None, keepdims=False) =
    linalg.vector_norm(input_tensor, axis, keepdims=keepdims)
reduce_logsumexp(input_tensor, axis=None, keepdims=False) =
    logsumexp(input_tensor, axis, keepdims)
reduce_max(input_tensor, axis: over=None, keepdims=False) =
    op.max(input_tensor, axis=axis, keepdims=keepdims)
reduce_mean(input_tensor, axis: integers=None, keepdims=False) =
    op.mean(input_tensor, axis=axis, keepdims=keepdims)
    if (own := input_tensor.array.dtype) is tf.float32 or own.kind not in 'iu'
    else tf.math.whole_mean(input_tensor, axis, keepdims)
reduce_min(input_tensor, axis: over=None, keepdims=False) =
    op.min(input_tensor, axis=axis, keepdims=keepdims)
reduce_prod(input_tensor, axis: over=None, keepdims=False) = tf.math.unwidened(
    op.prod(input_tensor, axis=axis, keepdims=keepdims), input_tensor.array.dtype)
reduce_std(input_tensor, axis: integers=None, keepdims=False) =
    op.std(input_tensor, axis=axis, ddof=0, keepdims=keepdims)
reduce_sum(input_tensor, axis: over=None, keepdims=False) = tf.math.unwidened(
    op.sum(input_tensor, axis=axis, keepdims=keepdims), input_tensor.array.dtype)
reduce_variance(input_tensor, axis: integers=None, keepdims=False) =
    op.var(input_tensor, axis=axis, ddof=0, keepdims=keepdims)
rint(x) = rint(x)
rsqrt(x) = reciprocal(sqrt(x))
scalar_mul(scalar, x) = multiply(scalar, x)
segment_mean(data, segment_ids) = tf.math.segment_sum(data, segment_ids)
    / maximum(tf.math.segment_sum(ones_like(data), segment_ids), 1)
squared_difference(x, y) = square(less)
    if (less := subtract(x, y)).array.dtype is tf.float32 or less.array.dtype.kind != 'c'
    else tf.math.conj(less) * less
softmax(logits, axis=-1) = nn.softmax(logits, -1 if axis is None else axis)
xlog1py(x, y) = where(equal(x, 0), 0.0, x * log1p(where(equal(x, 0), 0, y)))
xlogy(x, y) = where(equal(x, 0), 0.0, x * log(where(equal(x, 0), 1, y)))
zero_fraction(value) = mean(cast(equal(value, 0), 'float32'))
""",
    "tf.linalg": """
matmul(a, b, transpose_a=False, transpose_b=False, adjoint_a=False, adjoint_b=False,
    a_is_sparse=False, b_is_sparse=False, output_type=None) = matmul(a, b)
    if type(left := a.array) is ndarray and type(right := b.array) is ndarray and left.ndim > 1
    and right.ndim > 1 and output_type is None
    and not (transpose_a or transpose_b or adjoint_a or adjoint_b)
    else tf.linalg.turned_matmul(
    a, b, transpose_a, transpose_b, adjoint_a, adjoint_b, output_type)
adjoint(matrix) = conj(matrix_transpose(matrix))
cholesky(input) = linalg.cholesky(input)
cross(a, b) = linalg.cross(a, b)
det(input) = linalg.det(input)
diag_part(input, name='diag_part', k=0, padding_value=0, align='') =
    diagonal(input, tf.linalg.one(k), -2, -1)
eye(num_rows: sized, num_columns: sized=None, batch_shape: raw=None, dtype=tf.float32) =
    eye(num_rows, num_columns, 0, dtype) if batch_shape is None
    else tf.linalg.repeated(eye(num_rows, num_columns, 0, dtype), batch_shape)
eigh(tensor) = linalg.eigh(tensor)
eigvalsh(tensor) = linalg.eigvalsh(tensor)
expm(input) = linalg.expm(input)
global_norm(t_list) = training.global_norm(t_list)
inv(input, adjoint=False) =
    linalg.inv(tf.linalg.turned(input, False, adjoint, 'inv') if adjoint else input)
logdet(matrix) = linalg.slogdet(matrix)[1]
lstsq(matrix, rhs, l2_regularizer: raw=0.0, fast=True) = matmul(linalg.pinv(matrix), rhs)
    if not l2_regularizer else linalg.solve((square := matmul(
    other := tf.linalg.turned(matrix, False, True, 'lstsq'), matrix))
    + l2_regularizer * eye(square.shape[-1], dtype=square.dtype), matmul(other, rhs))
matrix_transpose(a, name='', conjugate=False) =
    conj(matrix_transpose(a)) if conjugate else matrix_transpose(a)
normalize(tensor, ord: raw='euclidean', axis: raw=None) =
    (tensor / (size := tf.linalg.norm(tensor, ord, axis, keepdims=True)), size)
matvec(a, b, transpose_a=False, adjoint_a=False, a_is_sparse=False, b_is_sparse=False) =
    matvec(tf.linalg.turned(a, transpose_a, adjoint_a, 'matvec')
    if transpose_a or adjoint_a else a, b)
pinv(a, rcond=None, validate_args=False) = linalg.pinv(a, rcond)
qr(input, full_matrices=False) = linalg.qr(input, 'complete' if full_matrices else 'reduced')
slogdet(input) = linalg.slogdet(input)
solve(matrix, rhs, adjoint=False) =
    linalg.solve(tf.linalg.turned(matrix, False, adjoint, 'solve') if adjoint else matrix, rhs)
svd(tensor, full_matrices=False, compute_uv=True) = linalg.svdvals(tensor) if not compute_uv
    else ((parts := linalg.svd(tensor, full_matrices))[1], parts[0],
    tf.linalg.turned(parts[2], False, True, 'svd'))
tensor_diag(diagonal) = reshape(diag(ravel(diagonal)), (*diagonal.shape, *diagonal.shape))
tensordot(a, b, axes: raw) =
    tensordot(a, b, axes if type(axes) is int else plain(axes))
trace(x) = tf.math.unwidened(sum(diagonal(x, 0, -2, -1), -1), x.array.dtype)
triangular_solve(matrix: raw, rhs, lower=True, adjoint=False) = linalg.solve_triangular(
    tf.linalg.turned(matrix, False, adjoint, 'triangular_solve'), rhs, lower != adjoint)
""",
    "tf.nest": """
flatten(structure, expand_composites=False) = core.extend.flatten(structure)
is_nested(structure) = isinstance(structure, (list, tuple, dict))
""",
    "tf.nn": """
avg_pool(input, ksize, strides, padding, data_format=None) =
    tf.nn.pooled(nn.avg_pool, 'avg_pool', None, input, ksize, strides, padding, data_format)
avg_pool1d(input, ksize, strides, padding, data_format='NWC') =
    tf.nn.pooled(nn.avg_pool1d, 'avg_pool1d', 1, input, ksize, strides, padding, data_format)
avg_pool2d(input, ksize, strides, padding, data_format='NHWC') =
    tf.nn.pooled(nn.avg_pool2d, 'avg_pool2d', 2, input, ksize, strides, padding, data_format)
batch_normalization(x, mean, variance, offset, scale, variance_epsilon) =
    nn.batch_normalization(x, mean, variance, offset, scale, variance_epsilon)
conv1d(input, filters, stride, padding, data_format='NWC', dilations=None) = tf.nn.convolved(
    nn.conv1d, 'conv1d', input, filters, stride, padding, data_format, dilations)
conv2d(input, filters, strides, padding, data_format='NHWC', dilations=None) =
    tf.nn.convolved(
    tf.nn.grouped, 'conv2d', input, filters, strides, padding, data_format, dilations)
convolution(input, filters, strides=None, padding='VALID', data_format=None, dilations=None) =
    tf.nn.convolved(
    nn.conv, 'convolution', input, filters, strides, padding, data_format, dilations)
crelu(features, axis=-1) = nn.relu(concatenate([features, -features], axis))
depthwise_conv2d(input, filter, strides, padding, data_format=None, dilations=None) =
    tf.nn.convolved(nn.depthwise_conv, 'depthwise_conv2d', input, filter, strides, padding,
    data_format, dilations)
elu(features) = nn.elu(features)
embedding_lookup(params, ids: tensor, max_norm=None) = nn.embedding_lookup(params, ids)
    if max_norm is None else clip_by_norm(nn.embedding_lookup(params, ids), max_norm,
    tuple(range(ids.ndim, ids.ndim + params.ndim - 1)))
gelu(features, approximate=False) = nn.gelu(features, approximate)
l2_loss(t) = sum(square(t)) / 2.0
nce_loss(weights, biases, labels, inputs: raw, num_sampled, num_classes, num_true=1,
    sampled_values=None, remove_accidental_hits=False) = nn.nce_loss(
    weights, biases, labels, inputs, plain(num_sampled), plain(num_classes),
    sampled_values=sampled_values, remove_accidental_hits=remove_accidental_hits)
sampled_softmax_loss(weights, biases, labels, inputs: raw, num_sampled, num_classes, num_true=1,
    sampled_values=None, remove_accidental_hits=True, seed: raw=None) = nn.sampled_softmax_loss(
    weights, biases, labels, inputs, plain(num_sampled), plain(num_classes),
    sampled_values=sampled_values, remove_accidental_hits=remove_accidental_hits)
leaky_relu(features, alpha=0.2) = nn.leaky_relu(features, alpha)
max_pool(input, ksize, strides, padding, data_format=None) =
    tf.nn.pooled(nn.max_pool, 'max_pool', None, input, ksize, strides, padding, data_format)
max_pool1d(input, ksize, strides, padding, data_format='NWC') =
    tf.nn.pooled(nn.max_pool1d, 'max_pool1d', 1, input, ksize, strides, padding, data_format)
max_pool2d(input, ksize, strides, padding, data_format='NHWC') =
    tf.nn.pooled(nn.max_pool2d, 'max_pool2d', 2, input, ksize, strides, padding, data_format)
moments(x, axes, shift=None, keepdims=False) =
    (mean(x, axes, keepdims), var(x, axes, keepdims=keepdims))
relu(features) = nn.relu(features)
relu6(features) = nn.relu6(features)
selu(features) = nn.selu(features)
silu(features, beta=1.0) = nn.silu(features) if type(beta) in (int, float) and beta == 1.0
    else features * nn.sigmoid(beta * features)
weighted_cross_entropy_with_logits(labels: raw, logits, pos_weight: raw) =
    (1.0 - (own := tf.nn.like(labels, logits))) * logits
    + (1.0 + (pos_weight - 1.0) * own) * nn.softplus(-logits)
sigmoid_cross_entropy_with_logits(labels: raw=None, logits=None) =
    nn.sigmoid_cross_entropy_with_logits(labels=labels
    if type(labels) is Tensor and labels.array.dtype is logits.array.dtype
    else tf.nn.like(labels, logits), logits=logits)
softmax_cross_entropy_with_logits(labels: raw, logits, axis=-1) =
    nn.softmax_cross_entropy_with_logits(labels=labels
    if type(labels) is Tensor and labels.array.dtype is logits.array.dtype
    else tf.nn.like(labels, logits), logits=logits, axis=axis)
softplus(features) = nn.softplus(features)
softsign(features) = nn.softsign(features)
sparse_softmax_cross_entropy_with_logits(labels, logits) =
    nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
""",
    "tf.debugging": """
Assert(condition, data: raw, summarize=None) = tf.debugging.ensure(condition, 'Assert', *data)
assert_all_finite(x, message='') =
    tf.debugging.ensure(isfinite(x), message or 'assert_all_finite', x)
assert_equal(x, y, message=None, summarize=None) =
    tf.debugging.ensure(equal(x, y), message or 'assert_equal', x, y)
assert_greater(x, y, message=None, summarize=None) =
    tf.debugging.ensure(greater(x, y), message or 'assert_greater', x, y)
assert_greater_equal(x, y, message=None, summarize=None) =
    tf.debugging.ensure(greater_equal(x, y), message or 'assert_greater_equal', x, y)
assert_integer(x, message=None) = tf.debugging.known(x.dtype.kind in 'iu', TypeError,
    f"{message or 'assert_integer'}: {x.dtype} is not an integer dtype")
assert_rank(x, rank: raw, message=None) = tf.debugging.known(x.ndim == int(rank), ValueError,
    f"{message or 'assert_rank'}: expected {int(rank)} axes, got {x.shape}")
assert_rank_at_least(x, rank: raw, message=None) = tf.debugging.known(x.ndim >= int(rank),
    ValueError, f"{message or 'assert_rank_at_least'}: need {rank} axes, got {x.shape}")
assert_type(tensor, tf_type: raw, message=None) = tf.debugging.known(
    tensor.dtype == as_dtype(tf_type), TypeError,
    f"{message or 'assert_type'}: dtype {tensor.dtype}, expected {as_dtype(tf_type)}")
assert_less(x, y, message=None, summarize=None) =
    tf.debugging.ensure(less(x, y), message or 'assert_less', x, y)
assert_less_equal(x, y, message=None, summarize=None) =
    tf.debugging.ensure(less_equal(x, y), message or 'assert_less_equal', x, y)
assert_near(x, y, rtol=None, atol=None, message=None, summarize=None) = tf.debugging.ensure(
    abs(x - y) <= tf.debugging.margin(atol, x) + tf.debugging.margin(rtol, x) * abs(y),
    message or 'assert_near', x, y)
assert_negative(x, message=None, summarize=None) =
    tf.debugging.ensure(less(x, 0), message or 'assert_negative', x)
assert_non_negative(x, message=None, summarize=None) =
    tf.debugging.ensure(greater_equal(x, 0), message or 'assert_non_negative', x)
assert_non_positive(x, message=None, summarize=None) =
    tf.debugging.ensure(less_equal(x, 0), message or 'assert_non_positive', x)
assert_none_equal(x, y, message=None, summarize=None) =
    tf.debugging.ensure(not_equal(x, y), message or 'assert_none_equal', x, y)
assert_positive(x, message=None, summarize=None) =
    tf.debugging.ensure(greater(x, 0), message or 'assert_positive', x)
assert_scalar(tensor, message=None) =
    tf.debugging.ensure(tensor.ndim == 0, message or 'assert_scalar', tensor)
is_numeric_tensor(tensor: raw) = isinstance(tensor, Tensor) and tensor.dtype.kind in 'fiuc'
""",
    "tf.image": """
random_brightness(image, max_delta, seed=None) =
    gradtape.image.random_brightness(image, max_delta, seed)
random_contrast(image, lower, upper, seed=None) =
    gradtape.image.random_contrast(image, lower, upper, seed)
random_crop(value, size, seed=None) =
    gradtape.image.random_crop(value, sizes(size, 'random_crop'), seed)
random_flip_left_right(image, seed=None) = gradtape.image.random_flip_left_right(image, seed)
random_flip_up_down(image, seed=None) = gradtape.image.random_flip_up_down(image, seed)
resize(images, size, method='bilinear', preserve_aspect_ratio=False, antialias=False) =
    gradtape.image.resize(images, sizes(size, 'resize'), method, preserve_aspect_ratio, antialias)
""",
    "tf.keras.activations": """
leaky_relu(x, negative_slope=0.2) = nn.leaky_relu(x, negative_slope)
""",
    "tf.keras.backend": """
batch_get_value(tensors: raw) = [tf.keras.backend.get_value(x) for x in tensors]
batch_set_value(tuples: raw) = [pair[0].assign(pair[1]) for pair in tuples]
dot(x, y) = tensordot(x, y, [[x.ndim - 1], [y.ndim - 2 if y.ndim > 1 else 0]])
get_value(x) = x.numpy()
int_shape(x: raw) = tuple(x.shape.as_list())
is_keras_tensor(x: raw) = isinstance(x, Tensor) and not hasattr(x.array, '__array__')
set_value(x: raw, value: raw) = x.assign(value)
batch_flatten(x) = reshape(x, (x.shape[0], -1))
count_params(x) = int(np.prod(x.shape))
random_bernoulli(shape, p=0.0, dtype=None, seed=None) =
    cast(seed.uniform(shape) < p, dtype or tf.keras.backend.floatx())
update(x: raw, new_x: raw) = x.assign(new_x)
update_add(x: raw, increment: raw) = x.assign_add(increment)
update_sub(x: raw, decrement: raw) = x.assign_sub(decrement)
""",
    "tf.keras.ops": """
convert_to_numpy(x) = np.array(x.numpy())
one_hot(x, num_classes, axis: raw=-1, dtype=None, sparse=False) =
    cast(moveaxis(one_hot(x, num_classes), -1, axis), dtype or 'float32')
""",
    "tf.ragged": """
boolean_mask(data: raw, mask: raw) = gradtape.data.RaggedTensor.masked(data, mask)
constant(pylist: raw, dtype=None, ragged_rank: raw=None, inner_shape=None,
    row_splits_dtype=tf.int64) =
    data.RaggedTensor.from_lists(pylist, lambda x: tf.constant(x, dtype), ragged_rank)
map_flat_values(op: raw, *args) = args[0].map_values(op, *args[1:])
stack(values: raw, axis: raw=0) = data.RaggedTensor.stacked(values)
""",
    "tf.random": """
categorical(logits, num_samples, dtype=tf.int64, seed=None) =
    cast(matrix_transpose(seed.categorical(logits, sizes(num_samples, 'categorical'))), dtype)
normal(shape, mean=0.0, stddev=1.0, dtype=tf.float32, seed=None) =
    seed.normal(shape, mean, stddev, dtype)
shuffle(value, seed=None) = seed.permutation(value)
stateless_normal(shape, seed: raw, mean=0.0, stddev=1.0, dtype=tf.float32,
    alg='auto_select') =
    tf.random.normal(shape, mean, stddev, dtype, tf.random.combined(seed))
stateless_truncated_normal(shape, seed: raw, mean=0.0, stddev=1.0, dtype=tf.float32) =
    tf.random.truncated_normal(shape, mean, stddev, dtype, tf.random.combined(seed))
stateless_uniform(shape, seed: raw, minval=0, maxval=None, dtype=tf.float32,
    alg='auto_select') =
    tf.random.uniform(shape, minval, maxval, dtype, tf.random.combined(seed))
truncated_normal(shape, mean=0.0, stddev=1.0, dtype=tf.float32, seed=None) =
    seed.truncated_normal(shape, mean, stddev, dtype)
""",
    "tf.sets": """
difference(a: raw, b: raw, aminusb=True, validate_indices=True) =
    tf.sparse.of_sets('difference', a, b, aminusb)
intersection(a: raw, b: raw, validate_indices=True) = tf.sparse.of_sets('intersection', a, b)
union(a: raw, b: raw, validate_indices=True) = tf.sparse.of_sets('union', a, b)
""",
    "tf.sparse": """
add(a: raw, b: raw, threshold=0) = tf.sparse.from_dense(tf.sparse.dense(a) + tf.sparse.dense(b))
eye(num_rows, num_columns=None, dtype=tf.float32) =
    tf.sparse.from_dense(eye(num_rows, num_columns, dtype=dtype))
reduce_max(sp_input: raw, axis=None, keepdims=False) = sp_input.max(axis, keepdims)
reduce_sum(sp_input, axis=None, keepdims=False) =
    tf.math.unwidened(sum(x := tf.sparse.dense(sp_input), axis, keepdims), x.array.dtype)
to_dense(sp_input: raw, default_value: raw=0, validate_indices=True) =
    sp_input.to_dense(default_value)
reorder(sp_input) = tf.sparse.from_dense(tf.sparse.dense(sp_input))
reshape(sp_input, shape) = tf.sparse.from_dense(reshape(tf.sparse.dense(sp_input), shape))
sparse_dense_matmul(sp_a, b: raw, adjoint_a=False, adjoint_b=False) = tf.linalg.matmul(
    tf.sparse.dense(sp_a), tf.sparse.dense(b), adjoint_a=adjoint_a, adjoint_b=adjoint_b)
transpose(sp_input, perm=None) = tf.sparse.from_dense(transpose(tf.sparse.dense(sp_input), perm))
""",
    "tf.strings": """
join(inputs, separator='') =
    tf.strings.each_text(lambda *parts: separator.encode().join(parts), *[
    tf.strings.texts(text) for text in inputs])
length(input: raw, unit='BYTE') = tf.strings.each_text(
    lambda text: len(text if unit == 'BYTE' else text.decode()), tf.strings.texts(input),
    dtype='int32')
lower(input: raw, encoding='') = tf.strings.each_text(lambda text: text.decode().lower().encode()
    if encoding else text.lower(), tf.strings.texts(input))
strip(input: raw) = tf.strings.each_text(lambda text: text.strip(), tf.strings.texts(input))
substr(input: raw, pos, len: raw, unit='BYTE') = tf.strings.each_text(
    lambda text, begin, count: text[begin:][:count] if unit == 'BYTE'
    else text.decode()[begin:][:count].encode(), tf.strings.texts(input), pos, len)
regex_replace(input: raw, pattern: raw, rewrite: raw, replace_global=True) =
    tf.strings.each_text(lambda text: re.sub(pattern.encode(), rewrite.encode(), text,
    0 if replace_global else 1), tf.strings.texts(input))
split(input: raw, sep: raw=None, maxsplit=-1) =
    tf.strings.parts(lambda text: text.split(sep or None, maxsplit), input)
bytes_split(input: raw) = tf.strings.parts(lambda text: [bytes([x]) for x in text.encode()], input)
unicode_split(input: raw, input_encoding: raw) = tf.strings.parts(list, input)
unicode_decode(input: raw, input_encoding: raw) =
    tf.strings.parts(lambda text: list(mapped(ord, text)), input)
unicode_encode(input: raw, output_encoding: raw) =
    tf.strings.joined(lambda row: ''.join(mapped(chr, row)), input)
reduce_join(inputs: raw, axis: raw=None, separator='') = tf.strings.joined(
    lambda row: separator.join([word.decode() for word in row]),
    tf.strings.texts(inputs).reshape(-1) if axis is None else inputs)
to_number(input: raw, out_type=tf.float32) =
    tf.strings.each_text(int if cast(0, out_type).dtype.kind == 'i' else float,
    tf.strings.texts(input), dtype=cast(0, out_type).dtype)
upper(input: raw, encoding='') = tf.strings.each_text(lambda text: text.decode().upper().encode()
    if encoding else text.upper(), tf.strings.texts(input))
""",
    "tf.signal": """
fft(input) = fft.fft(input)
fft2d(input) = fft.fft2(input)
fft3d(input) = fft.fftn(input, axes=(-3, -2, -1))
fftshift(x, axes=None) = fft.fftshift(x, axes)
ifft(input) = fft.ifft(input)
ifft2d(input) = fft.ifft2(input)
ifft3d(input) = fft.ifftn(input, axes=(-3, -2, -1))
ifftshift(x, axes=None) = fft.ifftshift(x, axes)
irfft(input_tensor, fft_length=None) = fft.irfft(input_tensor, fft_length and fft_length[0])
irfft2d(input_tensor, fft_length=None) = fft.irfft2(input_tensor, fft_length)
rfft(input_tensor, fft_length=None) = fft.rfft(input_tensor, fft_length and fft_length[0])
rfft2d(input_tensor, fft_length=None) = fft.rfft2(input_tensor, fft_length)
""",
}
