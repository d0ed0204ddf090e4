import assert from 'node:assert/strict';
import { test } from 'node:test';
import { constants, inflateSync } from 'node:zlib';
import fc from 'fast-check';
import { HeaderEncoder } from './header-block.ts';

/** SPDY/3's dictionary: words with their lengths before them, then text. */
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

test('the blocks of a connection are one zlib stream with the dictionary of SPDY/3', () => {
  fc.assert(
    fc.property(fc.array(headers, { minLength: 1, maxLength: 5 }), (all) => {
      const encoder = new HeaderEncoder();
      const wire = Buffer.concat(all.map((each) => encoder.encode(each)));
      assert.deepEqual(decode(inflate(wire)), all);
    }),
  );
});

test('a block longer than one stored piece is whole', () => {
  const long = { long: 'x'.repeat(200_000) };
  assert.deepEqual(decode(inflate(new HeaderEncoder().encode(long))), [long]);
});

test('names are sent in lower case', () => {
  assert.deepEqual(decode(inflate(new HeaderEncoder().encode({ streamType: 'stdin' }))), [
    { streamtype: 'stdin' },
  ]);
});
