"""Names that take TensorFlow's arguments, and are gradtape's otherwise: a line for each.

A line gives TensorFlow's name, gradtape's, and the arguments in TensorFlow's order. An argument's
name, or the kind after a ``:``, says what becomes of it: tensors, axes, sizes and flags are made
what gradtape takes. Those after ``*`` go by keyword, one that begins with ``_`` goes nowhere, what
follows ``;`` is added, and each function takes ``name`` at the end, which does nothing.
"""

from __future__ import annotations

__all__ = ["SIGNATURES"]

SIGNATURES: dict[str, str] = {
    "tf": """
dynamic_partition = dynamic_partition(data, partitions, num_partitions)
dynamic_stitch = dynamic_stitch(indices, data:as_is)
broadcast_to = broadcast_to(input, shape)
einsum = einsum(equation, *inputs)
expand_dims = expand_dims(input, axis)
identity = copy(input)
pow = power(x, y)
repeat = repeat(input, repeats, axis=None)
reshape = reshape(tensor, shape)
reverse = flip(tensor, axis)
roll = roll(input, shift, axis)
round = round(x)
squeeze = squeeze(input, axis=None)
stop_gradient = stop_gradient(input)
tile = tile(input, multiples)
""",
    "tf.math": """
angle = angle(input)
conj = conj(x)
digamma = digamma(x)
erf = erf(x)
erfc = erfc(x)
imag = imag(input)
lgamma = lgamma(x)
log_softmax = nn.log_softmax(logits, axis=-1)
real = real(input)
reduce_all = all(input_tensor, axis=None, keepdims=False)
reduce_any = any(input_tensor, axis=None, keepdims=False)
reduce_euclidean_norm = linalg.vector_norm(input_tensor, axis=None, *, keepdims=False)
reduce_logsumexp = logsumexp(input_tensor, axis=None, keepdims=False)
reduce_max = max(input_tensor, axis=None, keepdims=False)
reduce_min = min(input_tensor, axis=None, keepdims=False)
reduce_std = std(input_tensor, axis=None, *, keepdims=False)
reduce_variance = var(input_tensor, axis=None, *, keepdims=False)
rint = rint(x)
scalar_mul = multiply(scalar, x)
softmax = nn.softmax(logits, axis=-1)
""",
    "tf.linalg": """
cholesky = linalg.cholesky(input)
cross = linalg.cross(a, b)
det = linalg.det(input)
eigh = linalg.eigh(tensor)
eigvalsh = linalg.eigvalsh(tensor)
expm = linalg.expm(input)
global_norm = training.global_norm(t_list)
pinv = linalg.pinv(a, rcond=None, _validate_args=False)
slogdet = linalg.slogdet(input)
""",
    "tf.nn": """
elu = nn.elu(features)
gelu = nn.gelu(features, approximate=False)
leaky_relu = nn.leaky_relu(features, alpha=0.2)
relu = nn.relu(features)
relu6 = nn.relu6(features)
selu = nn.selu(features)
softplus = nn.softplus(features)
softsign = nn.softsign(features)
""",
    "tf.image": """
random_brightness = image.random_brightness(image, max_delta, seed=None)
random_contrast = image.random_contrast(image, lower, upper, seed=None)
random_crop = image.random_crop(value, size, seed=None)
random_flip_left_right = image.random_flip_left_right(image, seed=None)
random_flip_up_down = image.random_flip_up_down(image, seed=None)
resize = image.resize(images, size:shape, method='bilinear', preserve_aspect_ratio=False, antialias=False)
resize_with_pad = image.resize_with_pad(image, target_height, target_width, method='bilinear', antialias=False)
resize_with_crop_or_pad = image.resize_with_crop_or_pad(image, target_height, target_width)
""",
    "tf.signal": """
fft = fft.fft(input)
fft2d = fft.fft2(input)
fft3d = fft.fftn(input; axes=(-3, -2, -1))
fftshift = fft.fftshift(x, axes=None)
ifft = fft.ifft(input)
ifft2d = fft.ifft2(input)
ifft3d = fft.ifftn(input; axes=(-3, -2, -1))
ifftshift = fft.ifftshift(x, axes=None)
irfft = fft.irfft(input_tensor, fft_length=None:one_size)
irfft2d = fft.irfft2(input_tensor, fft_length=None)
rfft = fft.rfft(input_tensor, fft_length=None:one_size)
rfft2d = fft.rfft2(input_tensor, fft_length=None)
""",
}
