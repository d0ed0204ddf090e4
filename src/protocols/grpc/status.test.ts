import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  decodeStatusMessage,
  encodeStatusMessage,
  GrpcError,
  grpcCodeOf,
  grpcCodeOfHttp,
  grpcCodes,
  numberOfGrpcCode,
} from './status.ts';

test('status codes have the numbers of the gRPC protocol', () => {
  assert.equal(grpcCodes.length, 17);
  for (const [number, code] of [
    [0, 'OK'],
    [4, 'DEADLINE_EXCEEDED'],
    [5, 'NOT_FOUND'],
    [8, 'RESOURCE_EXHAUSTED'],
    [12, 'UNIMPLEMENTED'],
    [14, 'UNAVAILABLE'],
    [16, 'UNAUTHENTICATED'],
  ] as const) {
    assert.equal(grpcCodeOf(number), code);
    assert.equal(numberOfGrpcCode(code), number);
  }
});

test('treats an unknown status code as UNKNOWN', () => {
  for (const number of [17, -1, Number.NaN, 1.5]) assert.equal(grpcCodeOf(number), 'UNKNOWN');
});

test('percent-encodes status messages as the protocol requires', () => {
  assert.equal(encodeStatusMessage('plain text!'), 'plain text!');
  assert.equal(encodeStatusMessage('100%\n\u00e4\u{1f600}'), '100%25%0A%C3%A4%F0%9F%98%80');
});

test('any status message survives encoding, which uses printable characters only', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 60 }), (message) => {
      const encoded = encodeStatusMessage(message);
      assert.match(encoded, /^[\x20-\x7e]*$/);
      assert.equal(decodeStatusMessage(encoded), message);
    }),
  );
});

test('keeps an invalid escape of a status message as it is, and decodes the rest', () => {
  for (const [text, shown] of [
    ['100%', '100%'],
    ['50% of %E2%82%AC', '50% of \u20ac'],
    ['%zz %4', '%zz %4'],
    ['%e2%82%ac', '\u20ac'],
    ['broken %E2%82', 'broken \ufffd'],
  ] as const) {
    assert.equal(decodeStatusMessage(text), shown);
  }
});

test('truncates and marks a status message that is too long for a header', () => {
  const encoded = encodeStatusMessage('x'.repeat(100_000));
  assert.ok(encoded.length < 5_000);
  assert.ok(decodeStatusMessage(encoded).endsWith('x\u2026'));
});

test('maps an HTTP status without a gRPC status to a gRPC code', () => {
  for (const [status, code] of [
    [400, 'INTERNAL'],
    [401, 'UNAUTHENTICATED'],
    [403, 'PERMISSION_DENIED'],
    [404, 'UNIMPLEMENTED'],
    [429, 'UNAVAILABLE'],
    [500, 'UNKNOWN'],
    [502, 'UNAVAILABLE'],
    [503, 'UNAVAILABLE'],
    [504, 'UNAVAILABLE'],
    [302, 'UNKNOWN'],
  ] as const) {
    assert.equal(grpcCodeOfHttp(status), code);
  }
});

test("marks a status as the peer's only when the peer returned it", () => {
  const fromPeer = GrpcError.fromPeer('UNAVAILABLE', 'leaving');
  assert.deepEqual(
    [fromPeer.isFromPeer, fromPeer.grpcCode, fromPeer.message],
    [true, 'UNAVAILABLE', 'leaving'],
  );
  assert.equal(new GrpcError('UNAVAILABLE', 'connection lost').isFromPeer, false);
});
