// sinter/sequences/transformer.hpp: the layers of a transformer, stacks of them, and the whole.
#pragma once

#include "sinter/nn/activation.hpp"
#include "sinter/nn/linear.hpp"
#include "sinter/nn/module_list.hpp"
#include "sinter/nn/norm.hpp"
#include "sinter/sequences/multihead_attention.hpp"
#include "sinter/sequences/packed_sequence.hpp"

namespace sinter::nn {

/// The function between the two linear layers of a transformer's layer.
enum class feedforward { relu, gelu };

struct transformer_options {
  index_t feedforward_features = 2048;  ///< PyTorch's dim_feedforward
  double dropout = 0.1;                 ///< of weights of attention, and behind each part, in training mode
  feedforward activation = feedforward::relu;
  double layer_norm_eps = 1e-5;
  bool batch_first = false;  ///< (N,T,features) in place of (T,N,features)
  bool norm_first = false;   ///< norms stand before each part, not behind the sum
  bool causal = false;       ///< token i sees tokens up to i, in the attention of a sequence to itself
  bool operator==(const transformer_options&) const = default;
};
template <>
inline constexpr bool is_setting<transformer_options> = true;

/// In place of a mask: every query sees every key.
struct no_mask_t {};
inline constexpr no_mask_t no_mask{};

/// Which tokens of padded sequences there are: true for the first lengths[n] of sequence n, (N,1,1,T), as a mask for
/// attention. Lengths are on the host, of any integer type. Errors: value_error for one outside [0, steps].
///
///     auto y = encoder(x, nn::padding_mask(lengths, x.extent(1)));
template <device D = cpu, class Lengths = std::vector<index_t>>
tensor<bool, 4, D> padding_mask(const Lengths& lengths, index_t steps) {
  const std::vector<index_t> n = sinter::detail::host_lengths(lengths);
  sinter::detail::check_lengths("padding_mask", n, steps);
  const auto mask = tensor<bool, 4>::uninitialized({{static_cast<index_t>(n.size()), 1, 1, steps}});
  bool* to = sinter::detail::access::data(mask);
  for (const index_t length : n)
    for (index_t t = 0; t < steps; ++t) *to++ = t < length;
  return mask.template to<D>();
}

namespace detail {

template <class M>
inline constexpr bool is_mask = expression<M> || std::is_same_v<bare<M>, no_mask_t>;

/// What layers of an encoder and of a decoder share: a network with one hidden layer, and how a part is added to what
/// goes in.
template <class Self, floating_element T, device D, class Kind>
class transformer_layer : public module<Self> {
 public:
  using device_type = D;
  using kind = Kind;
  template <int R>
  using value = parameter<T, R, D, Kind>;

  transformer_layer() = default;

  const transformer_options& options() const { return options_; }

  linear<T, D, Kind> linear1, linear2;

 protected:
  transformer_layer(index_t features, generator& gen, const transformer_options& o)
      : linear1(features, o.feedforward_features, gen),
        linear2(o.feedforward_features, features, gen),
        options_(o),
        inner_(o.dropout, gen) {}

  static multihead_options attention_of(const transformer_options& o, bool causal) {
    return {.dropout = o.dropout, .batch_first = o.batch_first, .causal = causal};
  }

  template <class V>
  V hidden(const V& x) const {
    const auto finish = [this](const auto& h) { return V(linear2(inner_(h))); };
    return options_.activation == feedforward::relu ? finish(sinter::relu(linear1(x)))
                                                    : finish(sinter::gelu(linear1(x)));
  }
  /// x and what part(x) adds to it, with the norm where the options put it.
  template <class V, class Norm, class Part>
  V with(const V& x, const Norm& norm, const dropout<Kind>& drop, const Part& part) const {
    if (options_.norm_first) return x + drop(part(V(norm(x))));
    return norm(x + drop(part(x)));
  }

  transformer_options options_;
  dropout<Kind> inner_;
};

/// attention(x..., mask), or without the mask.
template <class Attention, class M, class... X>
auto attended(const Attention& attention, const M& mask, const X&... x) {
  if constexpr (std::is_same_v<M, no_mask_t>) return attention(x...);
  else return attention(x..., mask);
}

}  // namespace detail

/// A layer of a transformer's encoder: attention of a sequence to itself, then a network with one hidden layer, each
/// added to what goes in and normalised. x (T,N,features), with batch_first (N,T,features), or (T,features); a mask as
/// of attention may come behind it. Parameters, their names and their initial values are those of
/// torch.nn.TransformerEncoderLayer; masks are true where a query sees a key, the opposite of its masks. A. Vaswani et
/// al., NIPS (2017).
///
///     nn::transformer_encoder_layer layer(256, 8, gen, {.feedforward_features = 1024, .batch_first = true});
///     auto y = layer(x);        // (N,T,256) => (N,T,256)
///     auto z = layer(x, mask);
template <floating_element T = float, device D = cpu, class Kind = tracked>
class transformer_encoder_layer : public detail::transformer_layer<transformer_encoder_layer<T, D, Kind>, T, D, Kind> {
  using base = detail::transformer_layer<transformer_encoder_layer, T, D, Kind>;

 public:
  template <class To, class K>
  using rebind = transformer_encoder_layer<T, To, K>;

  transformer_encoder_layer() = default;
  transformer_encoder_layer(index_t features, index_t heads, generator& gen, const transformer_options& o = {})
      : base(features, gen, o),
        self_attn(features, heads, gen, base::attention_of(o, o.causal)),
        norm1(features, o.layer_norm_eps),
        norm2(features, o.layer_norm_eps),
        dropout1(o.dropout, gen),
        dropout2(o.dropout, gen) {}

  template <expression X, class M = no_mask_t>
    requires(std::is_same_v<element_of<X>, T> && (rank_of<X> == 2 || rank_of<X> == 3) && detail::is_mask<M>)
  auto forward(const X& x, const M& mask = {}) const {
    return run(sinter::detail::value_as<typename base::template value<rank_of<X>>>(x), mask);
  }

  template <class F, class... M>
  static void visit(F&& f, M&... m) {
    f("options", m.options_...);
    f("self_attn", m.self_attn...);
    f("linear1", m.linear1...);
    f("dropout", m.inner_...);
    f("linear2", m.linear2...);
    f("norm1", m.norm1...);
    f("norm2", m.norm2...);
    f("dropout1", m.dropout1...);
    f("dropout2", m.dropout2...);
  }

  multihead_attention<T, D, Kind> self_attn;
  layer_norm<T, D, Kind> norm1, norm2;
  dropout<Kind> dropout1, dropout2;

 private:
  template <floating_element, device, class>
  friend class transformer_encoder_layer;
  template <class V, class M>
  V run(const V& x, const M& mask) const;
};
transformer_encoder_layer(index_t, index_t, generator&, const transformer_options& = {}) -> transformer_encoder_layer<>;

// Out of the class, so that sinter::compiled can hold it.
template <floating_element T, device D, class Kind>
template <class V, class M>
V transformer_encoder_layer<T, D, Kind>::run(const V& x, const M& mask) const {
  const V h = this->with(x, norm1, dropout1, [&](const V& v) { return detail::attended(self_attn, mask, v); });
  return this->with(h, norm2, dropout2, [this](const V& v) { return this->hidden(v); });
}

/// A layer of a transformer's decoder: as one of the encoder, with attention to `memory`, what the encoder gave,
/// between the two parts. Masks of the sequence and of memory may come behind. As torch.nn.TransformerDecoderLayer.
///
///     nn::transformer_decoder_layer layer(256, 8, gen, {.batch_first = true, .causal = true});
///     auto y = layer(x, memory);                       // (N,T,256), (N,S,256) => (N,T,256)
///     auto z = layer(x, memory, nn::no_mask, nn::padding_mask(lengths, memory.extent(1)));
template <floating_element T = float, device D = cpu, class Kind = tracked>
class transformer_decoder_layer : public detail::transformer_layer<transformer_decoder_layer<T, D, Kind>, T, D, Kind> {
  using base = detail::transformer_layer<transformer_decoder_layer, T, D, Kind>;

 public:
  template <class To, class K>
  using rebind = transformer_decoder_layer<T, To, K>;

  transformer_decoder_layer() = default;
  transformer_decoder_layer(index_t features, index_t heads, generator& gen, const transformer_options& o = {})
      : base(features, gen, o),
        self_attn(features, heads, gen, base::attention_of(o, o.causal)),
        multihead_attn(features, heads, gen, base::attention_of(o, false)),
        norm1(features, o.layer_norm_eps),
        norm2(features, o.layer_norm_eps),
        norm3(features, o.layer_norm_eps),
        dropout1(o.dropout, gen),
        dropout2(o.dropout, gen),
        dropout3(o.dropout, gen) {}

  template <expression X, expression S, class M = no_mask_t, class N = no_mask_t>
    requires(std::is_same_v<element_of<X>, T> && std::is_same_v<element_of<S>, T> &&
             (rank_of<X> == 2 || rank_of<X> == 3) && rank_of<S> == rank_of<X> && detail::is_mask<M> &&
             detail::is_mask<N>)
  auto forward(const X& x, const S& memory, const M& mask = {}, const N& memory_mask = {}) const {
    using V = typename base::template value<rank_of<X>>;
    return run(sinter::detail::value_as<V>(x), sinter::detail::value_as<V>(memory), mask, memory_mask);
  }

  template <class F, class... M>
  static void visit(F&& f, M&... m) {
    f("options", m.options_...);
    f("self_attn", m.self_attn...);
    f("multihead_attn", m.multihead_attn...);
    f("linear1", m.linear1...);
    f("dropout", m.inner_...);
    f("linear2", m.linear2...);
    f("norm1", m.norm1...);
    f("norm2", m.norm2...);
    f("norm3", m.norm3...);
    f("dropout1", m.dropout1...);
    f("dropout2", m.dropout2...);
    f("dropout3", m.dropout3...);
  }

  multihead_attention<T, D, Kind> self_attn, multihead_attn;
  layer_norm<T, D, Kind> norm1, norm2, norm3;
  dropout<Kind> dropout1, dropout2, dropout3;

 private:
  template <floating_element, device, class>
  friend class transformer_decoder_layer;
  template <class V, class M, class N>
  V run(const V& x, const V& memory, const M& mask, const N& memory_mask) const;
};
transformer_decoder_layer(index_t, index_t, generator&, const transformer_options& = {}) -> transformer_decoder_layer<>;

template <floating_element T, device D, class Kind>
template <class V, class M, class N>
V transformer_decoder_layer<T, D, Kind>::run(const V& x, const V& memory, const M& mask, const N& memory_mask) const {
  V h = this->with(x, norm1, dropout1, [&](const V& v) { return detail::attended(self_attn, mask, v); });
  h = this->with(h, norm2, dropout2,
                 [&](const V& v) { return detail::attended(multihead_attn, memory_mask, v, memory, memory); });
  return this->with(h, norm3, dropout3, [this](const V& v) { return this->hidden(v); });
}

/// Whether a last norm stands behind the layers of a stack.
enum class final_norm { without, with };

namespace detail {

/// Layers one behind the other, "layers.0" and so on, and perhaps a norm, "norm".
template <class Self, class Layer, floating_element T, device D, class Kind>
class transformer_stack : public module<Self> {
 public:
  using device_type = D;
  using kind = Kind;

  transformer_stack() = default;
  transformer_stack(index_t features, index_t heads, index_t count, generator& gen, const transformer_options& o = {},
                    final_norm last = final_norm::without)
      : layers(count, [&] { return Layer(features, heads, gen, o); }), last_(last) {
    if (last == final_norm::with) norm = layer_norm<T, D, Kind>(features, o.layer_norm_eps);
  }

  template <expression X, class... More>
    requires(std::is_same_v<element_of<X>, T> && (rank_of<X> == 2 || rank_of<X> == 3))
  auto forward(const X& x, const More&... more) const {
    using V = parameter<T, rank_of<X>, D, Kind>;
    V h = sinter::detail::value_as<V>(x);
    for (const auto& layer : layers) h = layer(h, more...);
    return last_ == final_norm::with ? V(norm(h)) : h;
  }

  template <class F, class... M>
  static void visit(F&& f, M&... m) {
    f("last", m.last_...);
    f("layers", m.layers...);
    if (last_of(m...).has_norm()) f("norm", m.norm...);
  }

  bool has_norm() const { return last_ == final_norm::with; }

  module_list<Layer> layers;
  layer_norm<T, D, Kind> norm;

 private:
  template <class, class, floating_element, device, class>
  friend class transformer_stack;
  final_norm last_ = final_norm::without;
};

}  // namespace detail

/// Layers of an encoder one behind the other, with parameters "layers.0.self_attn.in_proj_weight" and so on, as
/// torch.nn.TransformerEncoder; each layer draws its own weights.
///
///     nn::transformer_encoder encoder(256, 8, 6, gen, {.batch_first = true});
///     auto y = encoder(x);
template <floating_element T = float, device D = cpu, class Kind = tracked>
class transformer_encoder : public detail::transformer_stack<transformer_encoder<T, D, Kind>,
                                                             transformer_encoder_layer<T, D, Kind>, T, D, Kind> {
 public:
  template <class To, class K>
  using rebind = transformer_encoder<T, To, K>;
  using detail::transformer_stack<transformer_encoder, transformer_encoder_layer<T, D, Kind>, T, D,
                                  Kind>::transformer_stack;
};
transformer_encoder(index_t, index_t, index_t, generator&, const transformer_options& = {},
                    final_norm = final_norm::without) -> transformer_encoder<>;

/// Likewise layers of a decoder: called as they are.
///
///     auto y = decoder(x, memory);
template <floating_element T = float, device D = cpu, class Kind = tracked>
class transformer_decoder : public detail::transformer_stack<transformer_decoder<T, D, Kind>,
                                                             transformer_decoder_layer<T, D, Kind>, T, D, Kind> {
 public:
  template <class To, class K>
  using rebind = transformer_decoder<T, To, K>;
  using detail::transformer_stack<transformer_decoder, transformer_decoder_layer<T, D, Kind>, T, D,
                                  Kind>::transformer_stack;
};
transformer_decoder(index_t, index_t, index_t, generator&, const transformer_options& = {},
                    final_norm = final_norm::without) -> transformer_decoder<>;

/// Encoder and decoder, each with a last norm: (S,N,features) and (T,N,features) => (T,N,features). `causal` is of the
/// decoder alone. Masks of the source, of the target and of what the encoder gave may come behind, or nn::no_mask. All
/// matrices begin as xavier_uniform draws them. Parameters "encoder.layers.0.…" and "decoder.…", as
/// torch.nn.Transformer.
///
///     nn::transformer translate(512, 8, 6, 6, gen, {.batch_first = true, .causal = true});
///     auto y = translate(source, target);
template <floating_element T = float, device D = cpu, class Kind = tracked>
class transformer : public module<transformer<T, D, Kind>> {
 public:
  using device_type = D;
  using kind = Kind;
  template <class To, class K>
  using rebind = transformer<T, To, K>;

  transformer() = default;
  transformer(index_t features, index_t heads, index_t encoder_layers, index_t decoder_layers, generator& gen,
              const transformer_options& o = {})
      : encoder(features, heads, encoder_layers, gen, seeing_all(o), final_norm::with),
        decoder(features, heads, decoder_layers, gen, o, final_norm::with) {
    this->for_each_parameter([&gen](const std::string&, const auto& p) {
      if constexpr (std::remove_cvref_t<decltype(p)>::rank == 2)
        sinter::detail::plain(p).in_place() = init::xavier_uniform<T, D>(gen, p.shape());
    });
  }

  template <expression X, expression Y, class M = no_mask_t, class N = no_mask_t, class K = no_mask_t>
    requires(std::is_same_v<element_of<X>, T> && std::is_same_v<element_of<Y>, T> && rank_of<X> == rank_of<Y> &&
             (rank_of<X> == 2 || rank_of<X> == 3) && detail::is_mask<M> && detail::is_mask<N> && detail::is_mask<K>)
  auto forward(const X& source, const Y& target, const M& source_mask = {}, const N& target_mask = {},
               const K& memory_mask = {}) const {
    return decoder(target, encoder(source, source_mask), target_mask, memory_mask);
  }
  SINTER_MEMBERS(encoder, decoder);

  transformer_encoder<T, D, Kind> encoder;
  transformer_decoder<T, D, Kind> decoder;

 private:
  static transformer_options seeing_all(transformer_options o) {
    o.causal = false;
    return o;
  }
};
transformer(index_t, index_t, index_t, index_t, generator&, const transformer_options& = {}) -> transformer<>;

}  // namespace sinter::nn
