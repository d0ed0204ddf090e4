import assert from 'node:assert/strict';
import { test } from 'node:test';
import { journalArguments } from './journal.ts';
import { readNodeLogQuery } from './node-log-query.ts';

function status(query: string): number | string {
  const read = readNodeLogQuery(new URLSearchParams(query));
  return read.kind === 'refused' ? read.status : read.kind;
}

test('a request without any query option is no log query', () => {
  assert.equal(status(''), 'none');
  assert.equal(status('other=1'), 'none');
});

test('responds with 400 to log query options that cannot be parsed', () => {
  for (const query of [
    'query=',
    'query=%20',
    'query=kubelet&sinceTime=yesterday',
    'query=kubelet&untilTime=2024-13-40T00:00:00Z',
    'query=kubelet&boot=x',
    'query=kubelet&tailLines=1.5',
  ]) {
    assert.equal(status(query), 400, query);
  }
});

test('responds with 406 to disallowed log query options', () => {
  for (const query of [
    'tailLines=1',
    'query=a;id',
    'query=$(id)',
    'query=a%0Ab',
    'query=a%20b',
    `query=${'x'.repeat(257)}`,
    'query=a&query=b&query=c&query=d&query=e',
    'query=/a&query=/b',
    'query=/a&query=b',
    'query=/a&tailLines=1',
    'query=a&boot=1',
    'query=a&tailLines=-1',
    'query=a&tailLines=100001',
    'query=a&sinceTime=2024-01-02T00:00:00Z&untilTime=2024-01-01T00:00:00Z',
    'query=a&pattern=(',
  ]) {
    assert.equal(status(query), 406, query);
  }
});

test('passes each query option to journalctl as one argument, whatever characters it contains', () => {
  const read = readNodeLogQuery(
    new URLSearchParams(
      'query=kubelet&query=foo&sinceTime=2024-01-02T03:04:05%2B01:00&untilTime=2024-01-02T04:00:00Z&tailLines=10&boot=-1&pattern=a%3B%20rm%20-rf%20.',
    ),
  );
  assert(read.kind === 'query');
  assert.deepEqual(journalArguments(['kubelet.service', 'foo.service'], read.query.options), [
    '--utc',
    '--no-pager',
    '--output=short-precise',
    '--since=2024-01-02 02:04:05 UTC',
    '--until=2024-01-02 04:00:00 UTC',
    '--pager-end',
    '--lines=10',
    '--unit=kubelet.service',
    '--unit=foo.service',
    '--grep=a; rm -rf .',
    '--boot=-1',
  ]);
});
