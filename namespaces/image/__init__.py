"""Images with channels last: resizing, flipping, colours, edges, and similarity measures."""

from __future__ import annotations

# the whole package before its parts: threads that start with different parts would deadlock
from ..plugins import ops  # noqa: F401
from ..plugins.ops.images.colours import adjust_brightness as adjust_brightness
from ..plugins.ops.images.colours import adjust_contrast as adjust_contrast
from ..plugins.ops.images.colours import adjust_gamma as adjust_gamma
from ..plugins.ops.images.colours import adjust_hue as adjust_hue
from ..plugins.ops.images.colours import adjust_saturation as adjust_saturation
from ..plugins.ops.images.colours import convert_image_dtype as convert_image_dtype
from ..plugins.ops.images.colours import grayscale_to_rgb as grayscale_to_rgb
from ..plugins.ops.images.colours import hsv_to_rgb as hsv_to_rgb
from ..plugins.ops.images.colours import per_image_standardization as per_image_standardization
from ..plugins.ops.images.colours import random_brightness as random_brightness
from ..plugins.ops.images.colours import random_contrast as random_contrast
from ..plugins.ops.images.colours import rgb_to_grayscale as rgb_to_grayscale
from ..plugins.ops.images.colours import rgb_to_hsv as rgb_to_hsv
from ..plugins.ops.images.measures import image_gradients as image_gradients
from ..plugins.ops.images.measures import psnr as psnr
from ..plugins.ops.images.measures import sobel_edges as sobel_edges
from ..plugins.ops.images.measures import ssim as ssim
from ..plugins.ops.images.measures import total_variation as total_variation
from ..plugins.ops.images.placing import central_crop as central_crop
from ..plugins.ops.images.placing import crop_to_bounding_box as crop_to_bounding_box
from ..plugins.ops.images.placing import flip_left_right as flip_left_right
from ..plugins.ops.images.placing import flip_up_down as flip_up_down
from ..plugins.ops.images.placing import pad_to_bounding_box as pad_to_bounding_box
from ..plugins.ops.images.placing import random_crop as random_crop
from ..plugins.ops.images.placing import random_flip_left_right as random_flip_left_right
from ..plugins.ops.images.placing import random_flip_up_down as random_flip_up_down
from ..plugins.ops.images.placing import resize_with_crop_or_pad as resize_with_crop_or_pad
from ..plugins.ops.images.placing import rot90 as rot90
from ..plugins.ops.images.placing import transpose as transpose
from ..plugins.ops.images.resizing import resize as resize
from ..plugins.ops.images.resizing import resize_with_pad as resize_with_pad
from ..public import publish

publish(__name__)
