"""Discrete Fourier transforms under NumPy's names."""

from __future__ import annotations

# the whole package before its parts: threads that start with different parts would deadlock
from ..plugins import ops  # noqa: F401
from ..plugins.ops.analysis.fourier import fft as fft
from ..plugins.ops.analysis.fourier import hfft as hfft
from ..plugins.ops.analysis.fourier import ifft as ifft
from ..plugins.ops.analysis.fourier import ihfft as ihfft
from ..plugins.ops.analysis.fourier import irfft as irfft
from ..plugins.ops.analysis.fourier import rfft as rfft
from ..plugins.ops.analysis.fourier_nd import fft2 as fft2
from ..plugins.ops.analysis.fourier_nd import fftfreq as fftfreq
from ..plugins.ops.analysis.fourier_nd import fftn as fftn
from ..plugins.ops.analysis.fourier_nd import fftshift as fftshift
from ..plugins.ops.analysis.fourier_nd import ifft2 as ifft2
from ..plugins.ops.analysis.fourier_nd import ifftn as ifftn
from ..plugins.ops.analysis.fourier_nd import ifftshift as ifftshift
from ..plugins.ops.analysis.fourier_nd import irfft2 as irfft2
from ..plugins.ops.analysis.fourier_nd import irfftn as irfftn
from ..plugins.ops.analysis.fourier_nd import rfft2 as rfft2
from ..plugins.ops.analysis.fourier_nd import rfftfreq as rfftfreq
from ..plugins.ops.analysis.fourier_nd import rfftn as rfftn
from ..public import publish

publish(__name__)
