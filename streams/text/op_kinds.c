/* The table of the meaning of kinds of ops, for ATen, prims, c10d, HLO and StableHLO, JAX, ONNX,
 * TensorFlow, MXNet, MindSpore, NCCL and MPI. docs/formats.md ("What a kind says") has it in words.
 *
 * A kind is split into words at punctuation and where lower case goes over into capitals, and
 * looked at in lower case: `nccl`, `all`, `reduce` of "ncclAllReduce". A row of the table is found
 * where some of these words in a row are it when written together, without a number at the end
 * ("dropout2d"). So "operand" has no "rand", and "all-reduce", "AllReduce" and "allreduce" are one.
 * If several rows match, the longest counts, so exceptions of a word are rows as well
 * ("poissonnllloss"). A kind without a row is pure if each of its words is in the vocabulary, else
 * unknown.
 *
 * Cost: a binary search for each run of at most RUN_MAX words.
 */
#include "op_kinds.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "streams/base/array.h"

enum { KIND_MAX = 192, WORDS_MAX = 32, RUN_MAX = 6 };

/* ---- The table ---- */

/* clang-format off */

/* Libraries that only communicate. */
static const char *const libraries[] = {
    "byteps", "c10d", "gloo", "hccl", "hcom", "horovod", "kvstore", "mpi", "msccl", "nccl",
    "nvshmem", "oneccl", "rccl", "xccl"};

/* Other devices take part: all of them must run it equally often. */
static const char *const collective_words[] = {
    "all2all", "allgather", "allgatherinto", "allgatherv", "allreduce", "allswap", "alltoall",
    "alltoallv", "alltoonedevice", "asyncdone", "asyncstart", "asyncupdate", "barrier",
    "batchisendirecv", "bcast", "broadcastcoalesced", "broadcastobjectlist", "cbroadcast",
    "collective", "commbroadcast", "commgather", "commreduce", "commsbroadcast", "commscatter",
    "commsreduce", "crossreplica", "crossreplicasum", "distbroadcast", "distgather", "distreduce",
    "distributedbroadcast", "distributedgather", "distributedreduce", "distributedscatter",
    "distscatter", "globalgather", "globalscatter", "hvdbroadcast", "iallgather", "iallreduce",
    "ialltoall", "ibcast", "irecv", "ireduce", "isend", "neighborexchange", "neighbourexchange",
    "p2p", "pbroadcast", "pgather", "pmax", "pmean", "pmin", "ppermute", "pshuffle", "psum",
    "psumscatter", "pswapaxes", "receive", "recv", "reducescatter", "ringexchange", "send",
    "sendrecv", "symmmem", "syncbatchnorm", "waittensor"};

/* From and to the host, or another device's memory. */
static const char *const copy_words[] = {
    "aooffload", "aoreload", "aowait", "atencuda", "copydone", "copyfromdevice", "copyfromhost",
    "copystart", "copytodevice", "copytohost", "cpuoffload", "crossdevicecopy", "d2d", "d2h",
    "devicecopy", "deviceget", "deviceput", "devicetohost", "dtod", "dtoh", "fromhost", "getnext",
    "h2d", "hosttodevice", "htod", "infeed", "memcpy", "offload", "outfeed", "pinmemory",
    "prefetch", "readfile", "reload", "swapin", "swapout", "tohost"};

/* Draws random numbers, by a state that is no operand, or may do so: attention of these kinds has a
 * dropout, and only an operand that is no tensor says how much. */
static const char *const random_words[] = {
    "alphadropout", "atengru", "atenlstm", "atenrnnrelu", "atenrnntanh", "bernoulli", "binomial",
    "candidatesampler", "cauchy", "cudnnattention", "cudnnrnn", "cudnnrnnv", "cutmix", "cutout",
    "dirichlet", "dropblock", "dropconnect", "dropedge", "dropnode", "dropout", "droppath",
    "efficientattention", "exponential", "featuredropout", "flashattention", "flashattn",
    "fractionalavgpool", "fractionalmaxpool", "fusedattention", "fusedattn", "geometric", "gumbel",
    "inductorseed", "inductorseeds", "laplace", "layerdrop", "lognormal",
    "memoryefficientattention", "miopenrnn", "mixup", "montecarlo", "multiheadattention",
    "multiheadattn", "multinomial", "noise", "nondeterministic", "normal", "npibeta",
    "npichisquare", "npichoice", "npif", "npigamma", "npilogistic", "npipareto", "npipowerd",
    "npirayleigh", "philox", "poisson", "rand", "randaugment", "randint", "randn", "random",
    "randomseedgenerator", "randperm", "rng", "rrelu", "sample", "sampling", "scaleddotattention",
    "scaleddotproductattention", "scaleddotproductcudnnattention",
    "scaleddotproductefficientattention", "scaleddotproductflashattention",
    "scaleddotproductfusedattention", "seed", "shuffle", "skipgram", "standardgamma", "stochastic",
    "stochasticconvert", "stochasticdepth", "stochasticpool", "stochasticpooling",
    "stochasticround", "stochasticrounding", "transformerencoderlayerfwd", "uniform", "weibull",
    "zoneout"};

/* Updates parameters. */
static const char *const optimizer_words[] = {
    "adadelta", "adafactor", "adagrad", "adam", "adamax", "adamw", "addsign", "applygradient",
    "applygradients", "applykerasmomentum", "applymomentum", "asgd", "ftml", "ftrl",
    "gradientdescent", "lamb", "lars", "lion", "momentumupdate", "momentumv", "multitensorapply",
    "muon", "nadam", "nagmom", "optim", "optimizer", "parameterupdate", "paramupdate", "powersign",
    "radam", "rmsprop", "rprop", "sgd", "shampoo", "signsgd", "signum", "weightupdate"};

/* Pure, although a shorter row that matches is not. */
static const char *const pure_words[] = {
    "atengrucell", "atenlstmcell", "atenrnnrelucell", "atenrnntanhcell", "channelshuffle",
    "downsample", "downsampling", "dropoutdomask", "exponentialdecay", "exponentiallinear",
    "exponentialminusone", "exponentialmoving", "geometricmean", "gridsample", "hloexponential",
    "mhloexponential", "normalcdf", "normalicdf", "optbarrier", "optimizationbarrier",
    "pixelshuffle", "pixelunshuffle", "poissonnllloss", "randombits", "randomfoldin", "randomseed",
    "randomsplit", "randomunwrap", "randomwrap", "resample", "resampling", "roundtonearest",
    "shufflechannel", "stablehloexponential", "stateless", "threefry", "threefry2x32",
    "uniformdequantize", "uniformquantize", "upsample", "upsampling", "warpshuffle"};

/* Classes of whole kinds, in this spelling. HLO writes opcodes alone, in lower case. */
static const struct {
    const char *kind;
    enum tarn_op_class op_class;
} whole_kinds[] = {
    {"Broadcast", TARN_CLASS_COLLECTIVE},  /* MindSpore; HLO's is "broadcast" */
    {"broadcast_", TARN_CLASS_COLLECTIVE}, /* c10d */
    {"Gamma", TARN_CLASS_RANDOM},          /* MindSpore */
    {"Momentum", TARN_CLASS_OPTIMIZER},    /* ONNX */
    {"Reduce", TARN_CLASS_COLLECTIVE},     /* MindSpore; HLO's is "reduce" */
    {"exponential", TARN_CLASS_PURE},      /* HLO; ATen's is "aten.exponential" */
    {"update", TARN_CLASS_OPTIMIZER},
};

static const char *const gradient_words[] = {"backprop", "backward", "bwd", "grad",
                                             "gradient", "grads",    "vjp"};

/* Words of kinds of pure ops. Words of ops that run other ops, such as "call" and "fusion", are not
 * among them. */
static const char *const vocabulary[] = {
    "0index", "1d", "2bit", "2d", "3d", "4bit", "a", "aa", "abs", "absolute", "acceptable",
    "accumulate", "acl", "acos", "acosh", "activation", "adagrad", "adam", "adamw", "adaptive",
    "add", "addbmm", "addcdiv", "addcmul", "addmm", "addmv", "addr", "adjoint", "affine", "after",
    "afz", "ai", "airy", "alias", "align", "aligned", "all", "allclose", "allgather", "alloc",
    "allreduce", "alltoall", "along", "alpha", "amax", "ambiguous", "amin", "aminmax", "amp", "and",
    "angle", "any", "apply", "approx", "arange", "arccos", "arccosh", "arcsin", "arcsinh", "arctan",
    "arctanh", "arg", "argmax", "argmin", "args", "argsort", "argwhere", "arithmetic", "array",
    "as", "asin", "asinh", "assign", "async", "at", "atan", "atanh", "aten", "atleast", "atol",
    "attach", "attention", "attribute", "autocast", "autograd", "available", "average", "avg",
    "avgpool", "axis", "b", "backprop", "backward", "baddbmm", "bag", "band", "barrier", "bartlett",
    "base", "batch", "batchnorm", "bernoulli", "bessel", "beta", "bf", "bfloat", "bias", "bicubic",
    "bilinear", "bin", "binarizer", "binary", "bincount", "binomial", "bins", "bit", "bitcast",
    "bits", "bitshift", "bitwise", "blackman", "block", "bmm", "bool", "broadcast", "bsc", "bsr",
    "bucketize", "buffer", "bwd", "by", "byte", "bytes", "c", "c2c", "c2r", "cache", "cachemask",
    "can", "cartesian", "cast", "cat", "cauchy", "causal", "cbrt", "ccol", "cdist", "ceil", "cell",
    "celu", "center", "chain", "chalf", "channel", "char", "chebyshev", "check", "checkpoint",
    "chlo", "choice", "cholesky", "choose", "chunk", "circular", "clamp", "clear", "clip", "clone",
    "clz", "coalesce", "coalesced", "col", "col2im", "collapse", "collective", "column", "com",
    "combination", "combinations", "common", "comp", "compare", "compatible", "complex", "compress",
    "compressed", "compute", "concat", "concatenate", "conj", "connected", "consecutive", "const",
    "constant", "constrain", "construct", "contiguous", "contrib", "conv", "convert", "convolution",
    "coo", "copy", "copysign", "core", "corrcoef", "correction", "correlation", "cos", "cosh",
    "cosine", "count", "counts", "cov", "cpu", "create", "crop", "cross", "crow", "csc", "cslt",
    "csr", "ct", "ctc", "cts", "cublas", "cuda", "cudnn", "cufft", "cum", "cumlogsumexp", "cummax",
    "cummaxmin", "cummin", "cumprod", "cumred", "cumsum", "cumulative", "cutlass", "d", "data",
    "debug", "decimals", "decoder", "deconv", "deconvolution", "default", "defaults", "deform",
    "deg2rad", "degrees", "dense", "dep", "depend", "deprecated", "depth", "depthwise",
    "dequantize", "det", "detach", "device", "dft", "dgrad", "diag", "diagflat", "diagonal", "diff",
    "difference", "differentiable", "digamma", "dilated", "dilation", "dim", "dimension", "dimname",
    "dims", "dir", "dirichlet", "dispatch", "dist", "distance", "distributed", "div", "divide",
    "dnnl", "do", "domain", "done", "dot", "double", "down", "dq", "draw", "dropout", "dsplit",
    "dstack", "dtype", "dtypes", "dual", "dummy", "dx", "dyn", "dynamic", "edges", "eff",
    "efficient", "efficientzerotensor", "eig", "eigenvalues", "eigh", "eigvals", "eigvalsh",
    "einsum", "element", "elements", "elementwise", "elemt", "elemwise", "elu", "emb", "embed",
    "embedding", "empty", "encoder", "engine", "ensemble", "ensure", "entr", "entropy", "enum",
    "eq", "equal", "erase", "erf", "erfc", "erfcx", "erfinv", "errors", "euclidean", "even", "ex",
    "exact", "example", "except", "exp", "expand", "experts", "expit", "expm", "exponential",
    "extract", "extractor", "eye", "eyelike", "f", "factor", "fake", "fallback", "fast", "fbgemm",
    "feature", "ff", "ffn", "fft", "fftfreq", "fftn", "fftshift", "file", "fill", "filled",
    "filter", "finite", "fix", "flash", "flatten", "flex", "flip", "fliplr", "flipud", "float",
    "floating", "floatlist", "floor", "fmax", "fmin", "fmod", "fold", "foobar", "for", "foreach",
    "format", "forward", "fp", "fq", "frac", "fractional", "fresh", "frexp", "frobenius", "from",
    "fsdp", "full", "fullcoverage", "fully", "functional", "functorch", "fused", "fw", "fwd",
    "gamma", "gammainc", "gammaincc", "gammaln", "gate", "gather", "gathernd", "gcd", "ge", "geglu",
    "gelu", "gemm", "general", "generator", "geometric", "geqrf", "ger", "get", "global", "glu",
    "grad", "gradient", "gradients", "greater", "grid", "group", "grouped", "groupnorm", "groups",
    "gru", "gt", "h", "half", "hamming", "handle", "hann", "hard", "hardmax", "hardshrink",
    "hardsigmoid", "hardswish", "hardtanh", "has", "hash", "he", "head", "heaviside", "helper",
    "hermite", "hfft", "hfftn", "hinge", "histc", "histogram", "histogramdd", "hlo", "hot",
    "householder", "hsplit", "hspmm", "hstack", "huber", "hypot", "i", "i0e", "i1e", "iand", "id",
    "identity", "idf", "idx", "if", "ifft", "ifftn", "ifftshift", "igamma", "igammac", "ihfft",
    "ihfftn", "ilshift", "im", "im2col", "imag", "image", "impl", "in", "incomplete", "index",
    "indexing", "indices", "inductor", "inf", "infeed", "inference", "infinitely", "info", "init",
    "initialize", "inner", "inplace", "input", "insert", "instance", "instancenorm", "int",
    "int4mm", "int4pack", "int8pack", "integer", "interface", "interleave", "internal",
    "interpolate", "intlist", "into", "ints", "inv", "inverse", "invert", "ior", "iota", "irecv",
    "irfft", "irfftn", "irshift", "is", "isclose", "isend", "isfinite", "isin", "isinf", "isnan",
    "isneginf", "isposinf", "isreal", "istft", "item", "ixor", "j", "jagged", "jax", "jaxpr", "jvp",
    "k", "kaiser", "kernel", "key", "khatri", "kl", "kn", "kron", "kthvalue", "kv", "l", "label",
    "laguerre", "lanczos", "last", "lax", "layer", "layernorm", "layout", "lazy", "lcm", "ldexp",
    "ldl", "le", "leading", "leaf", "leaky", "learnable", "left", "legacy", "legendre", "legit",
    "length", "lengths", "lerp", "less", "lesser", "lgamma", "lift", "like", "likelihood", "lin",
    "linalg", "linear", "linspace", "list", "load", "local", "log", "log1p", "logaddexp",
    "logcumsumexp", "logdet", "logical", "logistic", "logit", "logits", "logspace", "logsumexp",
    "long", "lookup", "loop", "loss", "low", "lp", "lr", "lrn", "lshift", "lstm", "lstsq", "lt",
    "lu", "luv", "m", "mae", "make", "map", "margin", "mask", "masked", "mat", "match",
    "materialize", "math", "matmul", "matrix", "max", "maximum", "maxpool", "md", "mean", "median",
    "mel", "mem", "memory", "memset", "merge", "meshgrid", "meta", "metadata", "mhlo", "microsoft",
    "min", "mindspore", "minimum", "minus", "miopen", "mirror", "mish", "mixed", "mkldnn", "mlp",
    "mm", "mod", "mode", "modified", "moe", "moments", "momentum", "monitored", "mosaic",
    "moveaxis", "movedim", "moving", "mps", "mse", "msg", "msort", "mul", "multi", "multicast",
    "multigammaln", "multilabel", "multinomial", "multiple", "multiply", "mv", "mvlgamma", "mx",
    "mxnet", "n", "na", "name", "nan", "nanmean", "nanmedian", "nanquantile", "nansum", "narrow",
    "native", "nbytes", "nd", "ndtr", "ndtri", "ne", "nearest", "neg", "negate", "negative",
    "neighbor", "nested", "new", "next", "nextafter", "nll", "nnpack", "nnz", "no", "noise", "non",
    "nonzero", "norm", "normal", "normalization", "normalizer", "not", "np", "npi", "npx", "nr",
    "ntonly", "nuclear", "num", "numel", "numpy", "obs", "of", "offset", "offsets", "one", "onednn",
    "ones", "only", "onnx", "op", "ops", "opt", "optimization", "optimized", "optional", "or",
    "ord", "orgqr", "ormqr", "other", "out", "outer", "outfeed", "output", "overlap", "overload",
    "overrideable", "p", "p2p", "pack", "packed", "pad", "padded", "padding", "paged", "pairwise",
    "parallel", "parameter", "params", "part", "partition", "patches", "pdist", "per", "periodic",
    "permutation", "permute", "permuted", "philox", "physical", "pick", "pin", "pinned", "pinv",
    "pinverse", "pivots", "pixel", "placeholder", "plain", "plan", "plus", "pmap", "pmax", "pmin",
    "point", "points", "pointwise", "poisson", "polar", "polygamma", "polynomial", "pool",
    "pooling", "popcnt", "population", "pos", "positive", "pow", "power", "powsum", "ppermute",
    "precision", "prelu", "prepack", "prepacked", "prevent", "prim", "primal", "primitive", "prims",
    "prod", "product", "proj", "projection", "promote", "propagate", "prune", "psi", "psum", "ptr",
    "put", "q", "qkv", "qlinear", "qparams", "qr", "qscheme", "quant", "quantile", "quantize",
    "quantized", "query", "qweight", "r2c", "rad2deg", "radians", "ragged", "rand", "randint",
    "randn", "random", "randperm", "range", "rank", "ranking", "rao", "ravel", "rcbrt", "rcond",
    "rdiv", "re", "read", "real", "reciprocal", "record", "recv", "reduce", "reduced", "reduction",
    "reflection", "reg", "regex", "regression", "regularized", "reinterpret", "relu", "rem",
    "remainder", "remove", "renorm", "reorder", "repeat", "replica", "replication", "repr",
    "requires", "rescale", "reshape", "residual", "resize", "resolve", "result", "retain",
    "retains", "return", "rev", "reverse", "rfft", "rfftfreq", "rfftn", "right", "rint", "rminus",
    "rms", "rmsnorm", "rng", "rngprims", "rnn", "roi", "roll", "rope", "rot", "rotary", "round",
    "router", "row", "rowwise", "rrelu", "rshift", "rsqrt", "rsub", "rtol", "s", "safe", "same",
    "sample", "sampled", "sampler", "sampling", "saturate", "scalar", "scalararray", "scalarint",
    "scalarrayarray", "scalarrayint", "scale", "scaled", "scales", "scan", "scatter", "scatternd",
    "score", "scramble", "sdp", "search", "searchsorted", "sections", "seed", "segment", "select",
    "selecting", "self", "selu", "semi", "send", "seqlen", "sequence", "serialization",
    "serialized", "set", "sgd", "sgn", "shallow", "shape", "shift", "shifted", "short", "shrink",
    "shuffle", "si", "sigmoid", "sign", "signbit", "signed", "silu", "similarity", "sin", "sinc",
    "sine", "single", "sinh", "sink", "size", "sizes", "slice", "slogdet", "slow", "smm", "smooth",
    "snapshot", "sobol", "soft", "softmax", "softmin", "softplus", "softshrink", "softsign",
    "solve", "sort", "source", "space", "sparse", "spatial", "spdiags", "special", "spherical",
    "split", "spsolve", "sqrt", "sqrth", "square", "squared", "squeeze", "src", "sspaddmm",
    "stable", "stablehlo", "stack", "standard", "start", "state", "static", "stats", "std", "step",
    "stft", "stitch", "stochastic", "stop", "storage", "str", "stream", "stride", "strided",
    "strides", "string", "structured", "sub", "subcmul", "subtract", "sum", "supported",
    "suppression", "svd", "svdvals", "svm", "swap", "swapaxes", "swapdims", "swi", "swiglu",
    "swish", "switch", "sym", "t", "tail", "take", "tan", "tanh", "tarn", "tbc", "tensor",
    "tensorarray", "tensorarrayint", "tensordot", "tensorinv", "tensors", "tensorsolve", "test",
    "tf", "tfidf", "tflite", "thnn", "threefry2x", "threshold", "thresholded", "tile", "to",
    "token", "tokens", "tol", "top", "topk", "torch", "trace", "training", "trans", "transform",
    "transformer", "transpose", "trapezoid", "trapz", "tree", "triangular", "tridiagonal", "tril",
    "trilinear", "trilu", "triplet", "triu", "true", "trunc", "tuple", "two", "type", "types", "u",
    "uint", "unary", "unbind", "unflatten", "unfold", "uniform", "unique", "unpack", "unpacked",
    "unpool", "unsafe", "unscale", "unshuffle", "unsorted", "unsqueeze", "unwrap", "up", "update",
    "upsample", "use", "using", "validate", "value", "values", "vander", "var", "variable",
    "variance", "vdot", "vec", "vecdot", "vector", "vectorizer", "version", "view", "vjp", "vsplit",
    "vstack", "vulkan", "w", "wait", "warn", "weight", "weights", "wgrad", "where", "window",
    "wise", "with", "wrap", "wrapped", "x", "xdivy", "xlog1py", "xlogy", "xnnpack", "xor", "y",
    "zero", "zeros", "zerotensor", "zeta"};

/* clang-format on */

static const struct {
    enum tarn_op_class op_class;
    const char *const *words;
    size_t count;
} table[] = {
    {TARN_CLASS_RANDOM, random_words, TARN_COUNT_OF(random_words)},
    {TARN_CLASS_COLLECTIVE, collective_words, TARN_COUNT_OF(collective_words)},
    {TARN_CLASS_COPY, copy_words, TARN_COUNT_OF(copy_words)},
    {TARN_CLASS_OPTIMIZER, optimizer_words, TARN_COUNT_OF(optimizer_words)},
    {TARN_CLASS_PURE, pure_words, TARN_COUNT_OF(pure_words)},
};

/* ---- Words ---- */

struct words {
    char text[2 * KIND_MAX]; /* each ends with a zero */
    uint16_t begin[WORDS_MAX];
    uint32_t count;
    bool is_whole; /* nothing was left out */
};

/* Does a word begin at the capital `text[i]`, which continues a row of letters and digits? */
static bool begins_word(const char *text, size_t i)
{
    unsigned char before = (unsigned char)text[i - 1], after = (unsigned char)text[i + 1];
    return islower(before) || islower(after);
}

static void split(const char *kind, struct words *words)
{
    size_t used = 0;
    bool inside = false;
    words->count = 0;
    words->is_whole = true;
    for (size_t i = 0; kind[i]; i++) {
        unsigned char c = (unsigned char)kind[i];
        bool is_letter = isalnum(c);
        if (inside && (!is_letter || (isupper(c) && begins_word(kind, i)))) {
            words->text[used++] = '\0';
            inside = false;
        }
        if (!is_letter) continue;
        if (i >= KIND_MAX || (!inside && words->count == WORDS_MAX)) {
            words->is_whole = false;
            break;
        }
        if (!inside) words->begin[words->count++] = (uint16_t)used;
        words->text[used++] = (char)tolower(c);
        inside = true;
    }
    words->text[used] = '\0';
}

static const char *word(const struct words *words, uint32_t i)
{
    return words->text + words->begin[i];
}

/* The word's length without a number of dimensions or of a version at its end. */
static size_t length_without_number(const char *text)
{
    size_t length = strlen(text);
    if (length > 1 && text[length - 1] == 'd' && isdigit((unsigned char)text[length - 2])) length--;
    while (length > 0 && isdigit((unsigned char)text[length - 1])) length--;
    return length;
}

static int compare(const void *key, const void *row)
{
    return strcmp(key, *(const char *const *)row);
}

static bool is_in(const char *text, const char *const *rows, size_t count)
{
    return bsearch(text, rows, count, sizeof *rows, compare) != NULL;
}

/* ---- Rows ---- */

/* Words i to j written together; without: less a number at the end. */
static void join(const struct words *words, uint32_t i, uint32_t j, bool without, char *joined)
{
    size_t used = 0;
    for (uint32_t k = i; k <= j; k++) {
        const char *text = word(words, k);
        size_t length = without && k == j ? length_without_number(text) : strlen(text);
        memcpy(joined + used, text, length);
        used += length;
    }
    joined[used] = '\0';
}

struct found {
    enum tarn_op_class op_class;
    size_t length;
    uint32_t end; /* its last word */
};

static void look_up(const char *joined, uint32_t end, struct found *found)
{
    size_t length = strlen(joined);
    for (size_t r = 0; r < TARN_COUNT_OF(table) && length > found->length; r++) {
        if (is_in(joined, table[r].words, table[r].count))
            *found = (struct found){table[r].op_class, length, end};
    }
}

static struct found find_row(const struct words *words)
{
    struct found found = {TARN_CLASS_UNKNOWN, 0, 0};
    char joined[KIND_MAX + 1];
    for (uint32_t i = 0; i < words->count; i++) {
        for (uint32_t j = i; j < words->count && j < i + RUN_MAX; j++) {
            join(words, i, j, false, joined);
            look_up(joined, j, &found);
            join(words, i, j, true, joined);
            look_up(joined, j, &found);
        }
    }
    return found;
}

static bool any_word_in(const struct words *words, uint32_t begin, const char *const *rows,
                        size_t count)
{
    for (uint32_t i = begin; i < words->count; i++) {
        if (is_in(word(words, i), rows, count)) return true;
    }
    return false;
}

static bool is_known(const struct words *words)
{
    char text[KIND_MAX + 1];
    for (uint32_t i = 0; i < words->count; i++) {
        join(words, i, i, true, text);
        bool is_number = *text == '\0' || strcmp(text, "v") == 0;
        if (!is_number && !is_in(text, vocabulary, TARN_COUNT_OF(vocabulary))) return false;
    }
    return words->count > 0 && words->is_whole;
}

/* ---- Questions ---- */

/* The kind itself, or with a number after a point, as HLO names instructions. */
static bool is_whole_kind(const char *kind, const char *whole)
{
    size_t length = strlen(whole);
    if (strncmp(kind, whole, length) != 0) return false;
    if (kind[length] == '.' && kind[length + 1])
        length += 1 + strspn(kind + length + 1, "0123456789");
    return kind[length] == '\0';
}

enum tarn_op_class tarn_kind_class(const char *kind)
{
    struct words words;
    for (size_t i = 0; i < TARN_COUNT_OF(whole_kinds); i++) {
        if (is_whole_kind(kind, whole_kinds[i].kind)) return whole_kinds[i].op_class;
    }
    split(kind, &words);
    if (any_word_in(&words, 0, libraries, TARN_COUNT_OF(libraries))) return TARN_CLASS_COLLECTIVE;
    struct found found = find_row(&words);
    if (found.op_class == TARN_CLASS_UNKNOWN)
        return is_known(&words) ? TARN_CLASS_PURE : TARN_CLASS_UNKNOWN;
    /* The gradient of a random op has its mask or its seed as an operand. */
    bool is_gradient =
        any_word_in(&words, found.end + 1, gradient_words, TARN_COUNT_OF(gradient_words));
    return found.op_class == TARN_CLASS_RANDOM && is_gradient ? TARN_CLASS_PURE : found.op_class;
}

bool tarn_kind_is_gradient(const char *kind)
{
    struct words words;
    split(kind, &words);
    return any_word_in(&words, 0, gradient_words, TARN_COUNT_OF(gradient_words));
}

static bool is_run(const struct words *words, const char *row)
{
    char joined[KIND_MAX + 1];
    for (uint32_t i = 0; i < words->count; i++) {
        for (uint32_t j = i; j < words->count && j < i + RUN_MAX; j++) {
            join(words, i, j, false, joined);
            if (strcmp(joined, row) == 0) return true;
        }
    }
    return false;
}

bool tarn_kind_has_word(const char *kind, const char *const *words, size_t count)
{
    struct words of_kind, asked;
    char row[KIND_MAX + 1];
    split(kind, &of_kind);
    for (size_t i = 0; i < count; i++) {
        split(words[i], &asked);
        if (asked.count == 0) continue;
        join(&asked, 0, asked.count - 1, false, row);
        if (is_run(&of_kind, row)) return true;
    }
    return false;
}

static bool is_sorted(const char *const *rows, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        if (strcmp(rows[i - 1], rows[i]) >= 0) return false;
    }
    return true;
}

bool tarn_kind_table_is_valid(void)
{
    for (size_t r = 0; r < TARN_COUNT_OF(table); r++) {
        if (!is_sorted(table[r].words, table[r].count)) return false;
    }
    return is_sorted(libraries, TARN_COUNT_OF(libraries)) &&
           is_sorted(gradient_words, TARN_COUNT_OF(gradient_words)) &&
           is_sorted(vocabulary, TARN_COUNT_OF(vocabulary));
}
