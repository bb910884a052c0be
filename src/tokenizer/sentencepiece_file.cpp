// Reading of .model files: protocol buffers, of which only what decides ids and texts is kept. The numbers of the
// fields are those of sentencepiece_model.proto.
#include <cstring>

#include "base/error.h"
#include "tokenizer/sentencepiece.h"

namespace hierarchos::tokenizers {
namespace {

// The fields of one message, one after another.
class Fields {
 public:
  Fields(std::string_view bytes, const std::string& where) : bytes_(bytes), where_(where) {}
  // False at the end. number() and the value that belongs to its kind are then of the next field.
  bool next() {
    if (bytes_.empty()) return false;
    const uint64_t key = varint();
    number_ = key >> 3;
    value_ = 0;
    text_ = {};
    switch (key & 7) {
      case 0:
        value_ = varint();
        break;
      case 1:
        fixed(8);
        break;
      case 2:
        text_ = take(varint());
        break;
      case 5:
        fixed(4);
        break;
      default:
        throw DataError("{}: not a SentencePiece model (a field of kind {})", where_, key & 7);
    }
    return true;
  }
  uint64_t number() const { return number_; }
  uint64_t integer() const { return value_; }
  bool flag() const { return value_ != 0; }
  std::string_view text() const { return text_; }
  float real() const {
    float out;
    const auto bits = static_cast<uint32_t>(value_);
    std::memcpy(&out, &bits, 4);
    return out;
  }

 private:
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (bytes_.empty()) break;
      const auto byte = static_cast<uint8_t>(bytes_[0]);
      bytes_.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    throw DataError("{}: not a SentencePiece model (a number is cut off)", where_);
  }
  std::string_view take(uint64_t length) {
    if (length > bytes_.size()) throw DataError("{}: not a SentencePiece model (a field is cut off)", where_);
    const std::string_view out = bytes_.substr(0, length);
    bytes_.remove_prefix(length);
    return out;
  }
  void fixed(size_t length) {
    const std::string_view bytes = take(length);
    for (size_t i = 0; i < length; ++i) value_ |= static_cast<uint64_t>(static_cast<uint8_t>(bytes[i])) << 8 * i;
  }
  std::string_view bytes_;
  const std::string& where_;
  uint64_t number_ = 0, value_ = 0;
  std::string_view text_;
};

SpmPiece read_piece(std::string_view bytes, const std::string& where) {
  SpmPiece piece;
  for (Fields f(bytes, where); f.next();) {
    if (f.number() == 1) piece.text = f.text();
    if (f.number() == 2) piece.score = f.real();
    if (f.number() == 3) {
      if (f.integer() < SpmPiece::Normal || f.integer() > SpmPiece::Byte)
        throw DataError("{}: piece \"{}\" has type {}", where, piece.text, f.integer());
      piece.type = static_cast<SpmPiece::Type>(f.integer());
    }
  }
  if (!unicode::is_valid(piece.text)) throw DataError("{}: a piece is no UTF-8", where);
  return piece;
}

void read_trainer(std::string_view bytes, SpmModel& model) {
  for (Fields f(bytes, model.where); f.next();) {
    switch (f.number()) {
      case 3:
        if (f.integer() < SpmModel::Unigram || f.integer() > SpmModel::Char)
          throw UnsupportedError("{}: model type {} is not supported", model.where, f.integer());
        model.kind = static_cast<SpmModel::Kind>(f.integer());
        break;
      case 24:
        model.whitespace_as_suffix = f.flag();
        break;
      case 35:
        model.byte_fallback = f.flag();
        break;
      case 44:
        model.unknown_surface = f.text();
        break;
      case 46:
        model.bos = f.text();
        break;
      case 47:
        model.eos = f.text();
        break;
      default:
        break;
    }
  }
}

void read_normalizer(std::string_view bytes, SpmModel& model) {
  for (Fields f(bytes, model.where); f.next();) {
    switch (f.number()) {
      case 2:
        model.character_map = f.text();
        break;
      case 3:
        model.add_dummy_prefix = f.flag();
        break;
      case 4:
        model.remove_extra_whitespaces = f.flag();
        break;
      case 5:
        model.escape_whitespaces = f.flag();
        break;
      default:
        break;
    }
  }
}

}  // namespace

SpmModel SpmModel::read(std::string_view bytes, const std::string& where) {
  SpmModel model;
  model.where = where;
  for (Fields f(bytes, where); f.next();) {
    if (f.number() == 1) model.pieces.push_back(read_piece(f.text(), where));
    if (f.number() == 2) read_trainer(f.text(), model);
    if (f.number() == 3) read_normalizer(f.text(), model);
    if (f.number() == 5)
      for (Fields d(f.text(), where); d.next();)
        if (d.number() == 2 && !d.text().empty())
          throw UnsupportedError("{}: a character map for decoding is not supported", where);
  }
  if (model.pieces.empty()) throw DataError("{}: a SentencePiece model without pieces", where);
  return model;
}

std::optional<int32_t> SpmModel::id_of_control(std::string_view piece) const {
  for (size_t i = 0; i < pieces.size(); ++i)
    if (pieces[i].type == SpmPiece::Control && pieces[i].text == piece) return static_cast<int32_t>(i);
  return std::nullopt;
}

}  // namespace hierarchos::tokenizers
