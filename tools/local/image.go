package local

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"image"
	_ "image/gif"  // registers the format
	_ "image/jpeg" // registers the format
	_ "image/png"  // registers the format
	"io"
	"net/http"
	"os"

	"github.com/dsh-run/dsh/tools"
)

// imageLimit is the largest image that is shown to a model.
const imageLimit = 10 << 20

// imageValue is what read returns of an image.
type imageValue struct {
	Path      string `json:"path"`
	PathBytes string `json:"path_bytes,omitempty"`
	Mime      string `json:"mime"`
	Width     int    `json:"width"`
	Height    int    `json:"height"`
	Bytes     int64  `json:"bytes"`
}

// readImage attaches the image in f, whose first bytes are head, to the call.
// It returns nil when f is no image.
func readImage(ctx context.Context, call *tools.Call, f *os.File, head []byte, path string, seen *observations) (*imageValue, error) {
	mime := imageType(head)
	if mime == "" {
		return nil, nil
	}
	info, err := f.Stat()
	if err != nil {
		return nil, osFailure(path, err)
	}
	if info.Size() > imageLimit {
		return nil, fail(TooLarge, "%s is an image of %d bytes; at most %d MiB can be shown", shownPath(path), info.Size(), imageLimit>>20)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, osFailure(path, err)
	}
	data, v, err := load(ctx, f, path)
	if err != nil {
		return nil, err
	}
	width, height, err := imageSize(data, mime)
	if err != nil {
		return nil, fail(NotText, "%s begins like an image (%s), but is none: %v", shownPath(path), mime, err)
	}
	call.Attach(tools.Image(data, mime))
	value := &imageValue{Mime: mime, Width: width, Height: height, Bytes: v.Size}
	value.Path, value.PathBytes = nameText(path)
	return value, seen.saw(path, v, span{0, v.Size})
}

func imageType(head []byte) string {
	switch mime := http.DetectContentType(head); mime {
	case "image/png", "image/jpeg", "image/gif", webp:
		return mime
	default:
		return ""
	}
}

const webp = "image/webp"

func imageSize(data []byte, mime string) (width, height int, err error) {
	if mime == webp {
		return webpSize(data)
	}
	c, _, err := image.DecodeConfig(bytes.NewReader(data))
	return c.Width, c.Height, err
}

// webpSize reads the size from the first chunk of a WebP file, which has one
// of three forms.
func webpSize(data []byte) (width, height int, err error) {
	const header = 12 // RIFF, size, WEBP
	if len(data) < header+18 {
		return 0, 0, errors.New("it ends in its header")
	}
	chunk, body := string(data[header:header+4]), data[header+8:]
	switch chunk {
	case "VP8X":
		return 1 + uint24(body[4:]), 1 + uint24(body[7:]), nil
	case "VP8L":
		bits := int(binary.LittleEndian.Uint32(body[1:]))
		return 1 + bits&0x3fff, 1 + bits>>14&0x3fff, nil
	case "VP8 ":
		return int(binary.LittleEndian.Uint16(body[6:])) & 0x3fff, int(binary.LittleEndian.Uint16(body[8:])) & 0x3fff, nil
	}
	return 0, 0, errors.New("its first part is of an unknown kind")
}

func uint24(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }
