import assert from 'node:assert/strict';
import { test } from 'node:test';
import { constants, inflateSync } from 'node:zlib';
import fc from 'fast-check';
import {
  dataHead,
  HeaderEncoder,
  pingFrame,
  type SpdyFrame,
  SpdyFrameReader,
  spdyGoAwayFrame,
  spdyResetFrame,
  synStreamFrame,
} from './frames.ts';

/** Joins the pieces of a data frame. */
function read(bytes: Buffer, cuts: readonly number[]): SpdyFrame[] {
  const reader = new SpdyFrameReader();
  const pieces: SpdyFrame[] = [];
  let at = 0;
  for (const cut of [
    ...cuts.map((each) => each % (bytes.length + 1)).toSorted((a, b) => a - b),
    bytes.length,
  ]) {
    for (const piece of reader.push(bytes.subarray(at, cut))) join(pieces, piece);
    at = cut;
  }
  return pieces;
}

function join(pieces: SpdyFrame[], piece: SpdyFrame): void {
  const last = pieces.at(-1);
  if (piece.kind === 'data' && last?.kind === 'data' && last.streamId === piece.streamId && !last.fin) {
    pieces[pieces.length - 1] = { ...piece, bytes: Buffer.concat([last.bytes, piece.bytes]) };
  } else {
    pieces.push(piece);
  }
}

const streamId = fc.integer({ min: 1, max: 0x7fff_ffff });
const sent = fc.oneof(
  fc
    .record({
      streamId,
      bytes: fc.uint8Array({ minLength: 1, maxLength: 300 }).map((each) => Buffer.from(each)),
    })
    .map(({ streamId: id, bytes }) => ({
      wire: Buffer.concat([dataHead(id, bytes.length, 'fin'), bytes]),
      piece: { kind: 'data', streamId: id, bytes, fin: true } as SpdyFrame,
    })),
  fc.record({ streamId, status: fc.integer({ min: 0, max: 11 }) }).map(({ streamId: id, status }) => ({
    wire: spdyResetFrame(id, status),
    piece: { kind: 'reset', streamId: id, status } as SpdyFrame,
  })),
  fc
    .integer({ min: 0, max: 0xffff_ffff })
    .map((id) => ({ wire: pingFrame(id), piece: { kind: 'ping', id } as SpdyFrame })),
  streamId.map((id) => ({
    wire: synStreamFrame(id, Buffer.from('headers')),
    piece: { kind: 'opened', streamId: id } as SpdyFrame,
  })),
  fc.constant({ wire: spdyGoAwayFrame(0), piece: { kind: 'go-away' } as SpdyFrame }),
);

test('decodes encoded SPDY frames however the bytes are divided into chunks', () => {
  fc.assert(
    fc.property(fc.array(sent), fc.array(fc.nat()), (frames, cuts) => {
      const wire = Buffer.concat(frames.map((each) => each.wire));
      assert.deepEqual(
        read(wire, cuts),
        frames.map((each) => each.piece),
      );
    }),
  );
});

test('decodes or rejects any bytes, and buffers at most one control frame', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 200 })), (chunks) => {
      const reader = new SpdyFrameReader();
      try {
        for (const chunk of chunks) for (const piece of reader.push(chunk)) assert.ok(piece.kind);
      } catch (error) {
        assert.equal((error as { code?: string }).code, 'SPDY_MALFORMED');
      }
    }),
  );
});

test('delivers a SPDY data frame of maximum length in pieces as they arrive', () => {
  const reader = new SpdyFrameReader();
  assert.deepEqual([...reader.push(dataHead(1, 0xff_ffff, 'fin'))], []);
  const [piece] = reader.push(Buffer.from('abc'));
  assert.deepEqual(piece, { kind: 'data', streamId: 1, bytes: Buffer.from('abc'), fin: false });
});

for (const [what, wire] of [
  ['a control frame that announces too much', Buffer.from([0x80, 3, 0, 2, 0, 0xff, 0xff, 0xff])],
  ['another version', Buffer.from([0x80, 2, 0, 6, 0, 0, 0, 4, 0, 0, 0, 1])],
  ['a control frame without what it must hold', Buffer.from([0x80, 3, 0, 6, 0, 0, 0, 0])],
] as const) {
  test(`rejects malformed SPDY frames: ${what}`, () => {
    assert.throws(() => [...new SpdyFrameReader().push(wire)], { code: 'SPDY_MALFORMED' });
  });
}

/** The preset zlib dictionary of SPDY/3: words, each preceded by its length, then plain text. */
const words =
  'options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow authorization cache-control connection content-base content-encoding content-language content-length content-location content-md5 content-range content-type date etag expect expires from host if-match if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade user-agent vary via warning www-authenticate method get status'.split(
    ' ',
  );
const moreWords = ['200 OK', 'version', 'HTTP/1.1', 'url', 'public', 'set-cookie', 'keep-alive', 'origin'];
const tail =
  '100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.';

const dictionary = Buffer.concat([
  ...[...words, ...moreWords].flatMap((word) => [Buffer.from([0, 0, 0, word.length]), Buffer.from(word)]),
  Buffer.from(tail),
]);

function inflate(bytes: Buffer): Buffer {
  return inflateSync(bytes, { dictionary, finishFlush: constants.Z_SYNC_FLUSH });
}

function decode(plain: Buffer): Record<string, string>[] {
  const blocks: Record<string, string>[] = [];
  let at = 0;
  const take = (length: number) => {
    at += length;
    return plain.subarray(at - length, at);
  };
  const number = () => take(4).readUInt32BE();
  const word = () => take(number()).toString();
  while (at < plain.length) {
    const count = number();
    blocks.push(Object.fromEntries(Array.from({ length: count }, () => [word(), word()])));
  }
  return blocks;
}

const headers = fc.dictionary(fc.stringMatching(/^[a-z-]{1,20}$/), fc.string({ maxLength: 2000 }), {
  noNullPrototype: true,
});

test('encodes the header blocks of a connection as one zlib stream with the dictionary of SPDY/3', () => {
  fc.assert(
    fc.property(fc.array(headers, { minLength: 1, maxLength: 5 }), (all) => {
      const encoder = new HeaderEncoder();
      const wire = Buffer.concat(all.map((each) => encoder.encode(each)));
      assert.deepEqual(decode(inflate(wire)), all);
    }),
  );
});

test('encodes a header block that is longer than one stored zlib block', () => {
  const long = { long: 'x'.repeat(200_000) };
  assert.deepEqual(decode(inflate(new HeaderEncoder().encode(long))), [long]);
});

test('sends header names in lower case', () => {
  assert.deepEqual(decode(inflate(new HeaderEncoder().encode({ streamType: 'stdin' }))), [
    { streamtype: 'stdin' },
  ]);
});
