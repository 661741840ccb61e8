// SPDX-License-Identifier: Apache-2.0
//
// Builds the tree with expat. Since a DTD is refused, only the five predefined entities of XML
// exist, and a document cannot grow when it is read.
#include "topology/read/xml.h"

#include <expat.h>

#include <algorithm>
#include <memory>

namespace beeline::topology {
namespace {

class Builder {
 public:
  Builder(XML_Parser parser, const std::string& file, const XmlLimits& limits)
      : parser_(parser), file_(file), limits_(limits) {
    XML_SetUserData(parser, this);
    XML_SetElementHandler(parser, on_start, on_end);
    XML_SetDoctypeDeclHandler(parser, on_doctype, nullptr);
  }

  Outcome<XmlElement> parse(std::string_view text) {
    const auto status = XML_Parse(parser_, text.data(), static_cast<int>(text.size()), XML_TRUE);
    if (status == XML_STATUS_OK && root_.line != 0) return std::move(root_);
    if (wrong_.empty()) {
      refuse(std::string("not valid XML: ") + XML_ErrorString(XML_GetErrorCode(parser_)) +
             "; write the file again if it was cut off or edited");
    }
    return fail(std::move(wrong_));
  }

 private:
  static void on_start(void* self, const XML_Char* name, const XML_Char** attributes) {
    static_cast<Builder*>(self)->start(name, attributes);
  }
  static void on_end(void* self, const XML_Char* /*name*/) { static_cast<Builder*>(self)->end(); }
  static void on_doctype(void* self, const XML_Char* /*name*/, const XML_Char* /*system*/,
                         const XML_Char* /*pub*/, int has_internal_subset) {
    auto* const builder = static_cast<Builder*>(self);
    if (builder->limits_.doctype == Doctype::kNameOnly && has_internal_subset == 0) return;
    builder->refuse("a DTD (<!DOCTYPE ...>) is not read, since it can define entities; remove it");
  }

  void start(const XML_Char* name, const XML_Char** attributes) {
    if (!wrong_.empty()) return;  // expat finishes its current token
    if (++elements_ > limits_.elements) {
      return refuse("more than " + std::to_string(limits_.elements) +
                    " elements, too many for one machine; is it the right file?");
    }
    if (open_.size() >= limits_.depth) {
      return refuse("elements more than " + std::to_string(limits_.depth) +
                    " deep, too deep for one machine; is it the right file?");
    }
    XmlElement& element = open_.emplace_back();
    element.name = name;
    element.line = XML_GetCurrentLineNumber(parser_);
    for (const XML_Char** at = attributes; *at != nullptr; at += 2) {
      element.attributes.emplace_back(at[0], at[1]);
    }
  }

  void end() {
    if (!wrong_.empty()) return;
    XmlElement element = std::move(open_.back());
    open_.pop_back();
    (open_.empty() ? root_ : open_.back().children.emplace_back()) = std::move(element);
  }

  void refuse(const std::string& why) {
    wrong_ = file_ + ":" + std::to_string(XML_GetCurrentLineNumber(parser_)) + ": " + why;
    XML_StopParser(parser_, XML_FALSE);
  }

  XML_Parser parser_;
  const std::string& file_;
  const XmlLimits& limits_;
  std::vector<XmlElement> open_;
  XmlElement root_;
  std::size_t elements_ = 0;
  std::string wrong_;
};

std::string too_large(const std::string& file, std::size_t max_bytes) {
  return file + ": larger than " + std::to_string(max_bytes >> 20) +
         " MiB, too large for one machine; is it the right file?";
}

}  // namespace

const std::string* XmlElement::find(std::string_view attribute) const noexcept {
  const auto found =
      std::ranges::find(attributes, attribute, &std::pair<std::string, std::string>::first);
  return found == attributes.end() ? nullptr : &found->second;
}

Outcome<XmlElement> parse_xml(std::string_view text, const std::string& file,
                              const XmlLimits& limits) {
  if (text.size() > limits.bytes) return fail(too_large(file, limits.bytes));
  const std::unique_ptr<XML_ParserStruct, decltype(&XML_ParserFree)> parser(
      XML_ParserCreate(nullptr), XML_ParserFree);
  if (parser == nullptr) return fail(file + ": not enough memory to read it");
  return Builder(parser.get(), file, limits).parse(text);
}

}  // namespace beeline::topology
