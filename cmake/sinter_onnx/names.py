"""Names of a model as identifiers of C++. Nothing of a file becomes code but by identifier() and comment()."""
import re

KEYWORDS = set("""alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class
compl concept const consteval constexpr constinit const_cast continue co_await co_return co_yield decltype default delete do
double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable namespace new
noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires return short signed
sizeof static static_assert static_cast struct switch template this thread_local throw true try typedef typeid typename union
unsigned using virtual void volatile wchar_t while xor xor_eq
std sinter nn D Kind X index_t main errno assert NULL module forward visit device_type kind rebind train eval infer to
parameter_count zero_grad named_parameters named_buffers for_each_parameter for_each_buffer INFINITY NAN""".split())
# What the code of models calls; a value or a member of such a name would hide it.
FUNCTIONS = set("""abs acos acosh adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d
add arange argmax argmin asin asinh atan atanh attention avg_pool1d avg_pool2d avg_pool3d broadcast_to cast ceil celu clamp clamp_max
clamp_min concat contiguous conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d cos cosh cumprod cumsum einsum elu
erf eval exp eye flip floor fmod from_data full gather gelu gelu_tanh grid_padding grid_sample group_norm hardmax hardsigmoid hardswish
index_get index_put index_select instance_norm interpolate interpolation isinf isnan isneginf isposinf keepdim layer_norm leaky_relu
local_response_norm log log_softmax logical_and logical_not logical_or logical_xor logsumexp lp_pool1d lp_pool2d lp_pool3d masked_select
matmul max max_pool1d max_pool2d max_pool3d maximum mean min minimum mish nms nonlinearity nonzero norm normalize pack_padded_sequence
pad pad_mode pad_packed_sequence permute pixel_places pixel_rounding pixel_shuffle pow prod reciprocal reduction relu remainder reshape
rms_norm roi_align round scatter scatter_reduce select selu shrink sigmoid sign silu sin sinh size slice softmax softplus softsign sqrt
square squeeze stack sum tan tanh tile topk transpose tril triu unsqueeze where zeros""".split())


LONGEST = 32  # of a name that is made of several


def identifier(text, otherwise="value"):
    """Letters, digits and single underscores, not at the ends and not first a digit: no name that C++ or a macro has taken."""
    out = re.sub(r"[^0-9A-Za-z]+", "_", text).strip("_")[:60].strip("_")
    out = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", out).lower()
    if not out:
        return otherwise
    if out[0].isdigit():
        out = f"{otherwise}_{out}"
    return out


def is_name(text):
    """Whether a file names a size, rather than only says that it is not known."""
    return re.search(r"[A-Za-z]", text) is not None and not text.startswith("unk__")


def comment(text):
    """Text of a file for a comment: one line of printable ASCII."""
    return re.sub(r"[^ -~]|\\|\?\?", "?", str(text))[:100]


def readable(name, op):
    """What a person would call a value: "/layer1/layer1.0/conv1/Conv_output_0" is layer1.0.conv1."""
    parts = [p for p in name.split("/") if p]
    if parts and re.fullmatch(rf"{op}(_\d+)?(_output_\d+)?", parts[-1]) and len(parts) > 1:
        parts.pop()
    elif parts:
        parts[-1] = re.sub(r"_output_\d+$", "", parts[-1])
    parts = [p for i, p in enumerate(parts) if i + 1 == len(parts) or not parts[i + 1].startswith(p)]
    while len(parts) > 1 and len("_".join(parts)) > LONGEST:
        parts.pop(0)
    return "_".join(parts) or op


class Names:
    """Gives each name once."""

    def __init__(self, taken=()):
        self.taken = KEYWORDS | FUNCTIONS | set(taken)

    def take(self, text, otherwise="value"):
        base = identifier(text, otherwise)
        found, n = base, 2
        while found in self.taken:
            found, n = f"{base}_{n}", n + 1
        self.taken.add(found)
        return found
