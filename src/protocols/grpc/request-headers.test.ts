import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HpackDecoder } from '../http2/hpack-decoder.ts';
import { formatTimeout, parseTimeout, RequestHeaders } from './request-headers.ts';
import type { CallOptions } from './service.ts';

const head = new RequestHeaders('/service/Method');
const written = (options: Omit<CallOptions, 'signal'>) => {
  const headers = new HpackDecoder(10_000).decode(head.block(options).bytes);
  assert.notEqual(headers, 'too-large');
  return headers === 'too-large' ? [] : [...headers];
};

const plain = [
  [':method', 'POST'],
  [':scheme', 'http'],
  [':authority', 'localhost'],
  [':path', '/service/Method'],
  ['content-type', 'application/grpc'],
  ['te', 'trailers'],
  ['user-agent', 'kubeling'],
];

test('a call without options has only the request headers that gRPC requires', () => {
  assert.deepEqual(written({}), plain);
});

test('sends the timeout of the call as grpc-timeout', () => {
  for (const timeoutMs of [2_000, 2_000, 5, 2_000]) {
    assert.deepEqual(written({ timeoutMs }), [...plain, ['grpc-timeout', `${timeoutMs}m`]]);
  }
  assert.deepEqual(written({}), plain);
});

test('sends metadata after the gRPC headers; metadata may set the user agent, but replaces no other header', () => {
  const metadata = { 'user-agent': 'probe', ':path': '/other', te: 'x', 'x-own': 'y', 'grpc-timeout': '1S' };
  assert.deepEqual(written({ metadata, timeoutMs: 7 }), [
    ...plain.slice(0, -1),
    ['user-agent', 'probe'],
    ['grpc-timeout', '7m'],
    ['x-own', 'y'],
  ]);
});

test('rejects metadata that cannot be sent as headers', () => {
  assert.throws(() => head.block({ metadata: { 'x-own': 'a\nb' } }), /Cannot send the header x-own/);
});

test('formats a timeout with at most eight digits, rounded up', () => {
  for (const [ms, header] of [
    [0, '1m'],
    [0.2, '1m'],
    [1_500, '1500m'],
    [99_999_999, '99999999m'],
    [100_000_000, '100000S'],
    [100_000_001, '100001S'],
    [1e15, '99999999S'],
  ] as const) {
    assert.equal(formatTimeout(ms), header);
  }
});

test('parses every unit of grpc-timeout', () => {
  for (const [header, ms] of [
    ['2H', 7_200_000],
    ['3M', 180_000],
    ['4S', 4_000],
    ['5m', 5],
    ['6000u', 6],
    ['7000000n', 7],
  ] as const) {
    assert.equal(parseTimeout(header), ms);
  }
});

test('rejects text that is not a grpc-timeout', () => {
  for (const header of [undefined, '', '5', 'S', '5s', '-5S', '123456789S', '1.5S', ['5S', '6S']]) {
    assert.equal(parseTimeout(header), undefined);
  }
});
