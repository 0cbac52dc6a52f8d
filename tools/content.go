package tools

import (
	"bytes"
	"fmt"
	"slices"
)

// Content is one block that a model sees, in the form MCP gives it.
type Content struct {
	Type     string `json:"type"` // "text" or "image"
	Text     string `json:"text,omitempty"`
	Data     []byte `json:"data,omitempty"` // an image; base64 in JSON
	MIMEType string `json:"mimeType,omitempty"`
}

// Text returns a text block.
func Text(s string) Content { return Content{Type: "text", Text: s} }

// Image returns an image block.
func Image(data []byte, mimeType string) Content {
	return Content{Type: "image", Data: data, MIMEType: mimeType}
}

// MarshalJSON gives a text block its text and an image its data, also where
// they are empty: MCP requires them.
func (c Content) MarshalJSON() ([]byte, error) {
	switch c.Type {
	case "text":
		return marshal(struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}{c.Type, c.Text})
	case "image":
		return marshal(struct {
			Type     string `json:"type"`
			Data     []byte `json:"data"`
			MIMEType string `json:"mimeType"`
		}{c.Type, append([]byte{}, c.Data...), c.MIMEType})
	}
	type plain Content
	return marshal(plain(c))
}

// checkContent says which of the blocks no model can be shown.
func checkContent(blocks ...Content) error {
	for _, c := range blocks {
		if c.Type != "text" && c.Type != "image" {
			return fmt.Errorf("a block of its content has the type %.40q, want text or image", c.Type)
		}
	}
	return nil
}

func copiedContent(blocks []Content) []Content {
	blocks = slices.Clone(blocks)
	for i := range blocks {
		blocks[i].Data = bytes.Clone(blocks[i].Data)
	}
	return blocks
}
