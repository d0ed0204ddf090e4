import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseLogTime } from '../runtime/index.ts';
import { readLogQuery } from './container-logs.ts';

const now = Date.UTC(2026, 0, 1) + 500;
const read = (query: string, splitStreams: 'on' | 'off' = 'off') =>
  readLogQuery(new URLSearchParams(query), { now, parseTime: parseLogTime, splitStreams });

function options(query: string) {
  const response = read(query, 'on');
  assert.ok(response.kind === 'options', JSON.stringify(response));
  return response.options;
}

function refusal(query: string, splitStreams: 'on' | 'off' = 'off') {
  const response = read(query, splitStreams);
  return response.kind === 'refused' ? [response.status, response.message] : 'not refused';
}

test('returns the complete log once when the request has no options', () => {
  const view = { since: undefined, limitBytes: undefined, stream: 'all', timestamps: 'hidden' };
  assert.deepEqual(options(''), { follow: 'no', instance: { which: 'newest' }, tailLines: undefined, view });
});

test('parses each option of a log request', () => {
  assert.equal(options('follow=true').follow, 'until-ended');
  assert.equal(options('follow').follow, 'until-ended');
  assert.equal(options('follow=False').follow, 'no');
  assert.equal(options('follow=0').follow, 'no');
  assert.deepEqual(options('previous=true').instance, { which: 'previous' });
  assert.deepEqual(options('instance=x://1&previous=true').instance, { which: 'id', id: 'x://1' });
  assert.equal(options('tailLines=0').tailLines, 0);
  assert.equal(options('tail=7&tailLines=3').tailLines, 7);
  assert.equal(options('tail=all&tailLines=3').tailLines, undefined);
  assert.equal(options('timestamps=1').view.timestamps, 'shown');
  assert.equal(options('limitBytes=5').view.limitBytes, 5);
  assert.equal(options('stream=Stderr').view.stream, 'stderr');
  assert.deepEqual(options('sinceSeconds=60').view.since, {
    seconds: now / 1_000 - 60.5,
    nanos: 500_000_000,
  });
  assert.deepEqual(options('sinceTime=2026-01-01T01:00:00.25%2B01:00').view.since, {
    seconds: Date.UTC(2026, 0, 1) / 1_000,
    nanos: 250_000_000,
  });
});

test('rejects a log request with all invalid options in one response', () => {
  const [status, message] = refusal(
    'tailLines=-1&limitBytes=0&sinceSeconds=0&sinceTime=2026-01-01T00:00:00Z',
  );
  assert.equal(status, 422);
  for (const part of [
    /tailLines must be 0 or more/,
    /limitBytes must be 1/,
    /sinceSeconds must be 1/,
    /at most one/,
  ])
    assert.match(String(message), part);
  assert.equal(refusal('stream=Both', 'on')[0], 422);
  assert.equal(refusal('stream=Stdout&tailLines=1', 'on')[0], 422);
});

test('reports unparsable log options before invalid ones', () => {
  for (const query of ['tailLines=x&limitBytes=0', 'limitBytes=1.5', 'sinceTime=yesterday'])
    assert.equal(refusal(query)[0], 400, query);
});

test('rejects a log request for a single stream when the feature gate is off', () => {
  assert.deepEqual(refusal('stream=Stdout'), [
    400,
    'unable to return the given log stream: "Stdout". Please enable PodLogsQuerySplitStreams feature gate in kubelet',
  ]);
  assert.equal(refusal('stream=All'), 'not refused');
});
