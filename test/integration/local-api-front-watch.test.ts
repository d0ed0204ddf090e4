import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { test } from 'node:test';
import { connect } from 'node:tls';
import { StatusError } from '../../src/local-api/api/api-types.ts';
import type { ServedWatchEvent } from '../../src/local-api/api/responses.ts';
import { FrontRig } from '../fakes/api-front.ts';
import { until } from '../fakes/until.ts';
import { VirtualClock } from '../fakes/virtual-clock.ts';

const maps = '/api/v1/namespaces/a/configmaps';

/** A fake watch whose lines are sent by the test. */
class LineSource {
  readonly #waiting: ServedWatchEvent[] = [];
  #wake = () => {};
  #over = false;
  ended = 0;
  taken = 0;

  push(...lines: readonly ServedWatchEvent[]): void {
    this.#waiting.push(...lines);
    this.#wake();
  }

  end(): void {
    this.#over = true;
    this.#wake();
  }

  async *lines(signal: AbortSignal): AsyncIterable<ServedWatchEvent> {
    try {
      for (;;) {
        const next = this.#waiting.shift();
        if (next !== undefined) {
          this.taken++;
          yield next;
        } else if (this.#over || signal.aborted) return;
        else
          await new Promise<void>((resolve) => {
            this.#wake = resolve;
            signal.addEventListener('abort', () => resolve(), { once: true });
          });
      }
    } finally {
      this.ended++;
    }
  }
}

function line(type: 'ADDED' | 'MODIFIED' | 'BOOKMARK', version: string, data = ''): ServedWatchEvent {
  const metadata = { name: 'x', namespace: 'a', resourceVersion: version };
  return { type, object: Object.freeze({ kind: 'ConfigMap', apiVersion: 'v1', metadata, data: { data } }) };
}

interface OpenWatch {
  readonly response: IncomingMessage;
  readonly text: () => string;
  readonly ended: () => boolean;
  readonly close: () => void;
}

function openWatch(port: number, query = 'watch=1', accept = 'application/json'): Promise<OpenWatch> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: 'Bearer admin', accept };
    const options = { host: '127.0.0.1', port, path: `${maps}?${query}`, headers, rejectUnauthorized: false };
    const sent = request({ ...options, agent: false }, (response) => {
      let text = '';
      let ended = false;
      response.on('data', (chunk: Buffer) => (text += chunk.toString()));
      response.on('end', () => (ended = true)).on('error', () => {});
      resolve({ response, text: () => text, ended: () => ended, close: () => sent.destroy() });
    });
    sent.on('error', reject);
    sent.end();
  });
}

test('starts a watch response immediately, sends each event as it happens and ends the watch cleanly', async () => {
  await using harness = await FrontRig.open();
  const source = new LineSource();
  harness.api.lines = (_call, signal) => source.lines(signal);
  const watch = await openWatch(harness.port);
  assert.deepEqual(
    [
      watch.response.statusCode,
      watch.response.headers['content-type'],
      watch.response.headers['transfer-encoding'],
    ],
    [200, 'application/json', 'chunked'],
  );
  source.push(line('ADDED', '1'));
  await until('the first line has arrived', () => watch.text().endsWith('\n'));
  assert.deepEqual(JSON.parse(watch.text()), line('ADDED', '1'));
  source.push(line('MODIFIED', '2'));
  await until('the second line has arrived', () => watch.text().split('\n').length === 3);
  source.end();
  await until('the end has arrived', () => watch.ended());
  assert.equal(watch.response.complete, true);
});

test('rejects a watch that cannot start, and reports in the last line why a running watch failed', async () => {
  await using harness = await FrontRig.open();
  const gone = new StatusError({ code: 410, reason: 'Expired', message: 'too old resource version: 1 (5)' });
  harness.api.lines = () => {
    throw new StatusError({ code: 400, reason: 'BadRequest', message: 'no such selector' });
  };
  assert.deepEqual((await harness.ask(`${maps}?watch=1`)).json['message'], 'no such selector');
  harness.api.lines = () => ({ [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(gone) }) });
  assert.equal((await harness.ask(`${maps}?watch=1`)).status, 410);
  harness.api.lines = async function* () {
    yield line('ADDED', '1');
    throw gone;
  };
  const { status, text } = await harness.ask(`${maps}?watch=1`);
  const last = JSON.parse(text.trimEnd().split('\n').at(-1) ?? '');
  assert.deepEqual([status, last.type, last.object.code, last.object.reason], [200, 'ERROR', 410, 'Expired']);
  assert.deepEqual(harness.complaints, []);
  harness.api.lines = async function* () {
    yield line('ADDED', '1');
    throw new TypeError('oops');
  };
  const broken = await harness.ask(`${maps}?watch=1`);
  assert.match(broken.text, /"type":"ERROR".*"code":500/);
  assert.equal(harness.complaints.length, 1);
});

test('sends an empty line on a watch fifteen seconds after the last event', async () => {
  const clock = new VirtualClock();
  await using harness = await FrontRig.open({ clock });
  const source = new LineSource();
  harness.api.lines = (_call, signal) => source.lines(signal);
  const watch = await openWatch(harness.port);
  await until('the keepalive timer is set', () => clock.pendingTimers > 0);
  await clock.advance(10_000);
  source.push(line('ADDED', '1'));
  await until('the line has arrived', () => watch.text().endsWith('\n'));
  const { length } = watch.text();
  await clock.advance(14_999);
  assert.equal(watch.text().length, length);
  await clock.advance(1);
  await until('an empty line has arrived', () => watch.text().length === length + 1);
  assert.ok(watch.text().endsWith('}\n\n'));
  await clock.advance(15_000);
  await until('another one has arrived', () => watch.text().endsWith('}\n\n\n'));
  watch.close();
  await until('the watch has ended', () => source.ended === 1);
  assert.equal(clock.pendingTimers, 0);
});

test('detects that a watch client disconnected, even when its request body is unread', async () => {
  await using harness = await FrontRig.open();
  const source = new LineSource();
  harness.api.lines = (_call, signal) => source.lines(signal);
  const socket = connect({ port: harness.port, host: '127.0.0.1', rejectUnauthorized: false });
  socket.on('error', () => {});
  const head = `GET ${maps}?watch=1 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer admin\r\nContent-Length: 500000`;
  socket.write(`${head}\r\n\r\n${'x'.repeat(400_000)}`);
  await until('it watches', () => harness.api.calls.length > 0);
  socket.destroy();
  await until('the watch has ended', () => source.ended === 1);
});

test('sends the column definitions of a watched table only once', async () => {
  await using harness = await FrontRig.open();
  harness.api.lines = async function* () {
    yield line('ADDED', '1');
    yield line('MODIFIED', '2');
    yield { type: 'ERROR', object: { kind: 'Status', code: 410 } };
  };
  const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json';
  const { text } = await harness.ask(`${maps}?watch=1`, { headers: { accept } });
  const [first, second, third] = text
    .trimEnd()
    .split('\n')
    .map((each) => JSON.parse(each));
  assert.deepEqual([first.type, first.object.kind, first.object.rows.length], ['ADDED', 'Table', 1]);
  assert.ok(first.object.columnDefinitions.length > 0);
  assert.ok(!second.object.columnDefinitions?.length);
  assert.equal(second.object.metadata.resourceVersion, '2');
  assert.deepEqual(third, { type: 'ERROR', object: { kind: 'Status', code: 410 } });
});

test('serves watches of metadata only, and returns 406 for a watch in YAML', async () => {
  await using harness = await FrontRig.open();
  harness.api.lines = async function* () {
    yield line('ADDED', '1');
  };
  const accept = 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io';
  const { json } = await harness.ask(`${maps}?watch=1`, { headers: { accept } });
  const { kind, ...rest } = json['object'] as Record<string, unknown>;
  assert.deepEqual([kind, Object.keys(rest)], ['PartialObjectMetadata', ['apiVersion', 'metadata']]);
  const yaml = await harness.ask(`${maps}?watch=1`, { headers: { accept: 'application/yaml' } });
  assert.equal(yaml.status, 406);
});

test('disconnects a watch client that does not read without buffering for it, while other clients receive every event', async () => {
  const clock = new VirtualClock();
  await using harness = await FrontRig.open({ clock });
  const [slow, quick] = [new LineSource(), new LineSource()];
  harness.api.lines = ({ query }, signal) => (query.has('slow') ? slow : quick).lines(signal);
  const stuck = await openWatch(harness.port, 'watch=1&slow=1');
  const reader = await openWatch(harness.port);
  let heard = 0;
  reader.response.on('data', (chunk: Buffer) => {
    heard += chunk.toString().split('"type":"MODIFIED"').length - 1;
  });
  stuck.response.pause();
  const events = Array.from({ length: 2_000 }, (_, index) =>
    line('MODIFIED', String(index), 'x'.repeat(10_000)),
  );
  slow.push(...events);
  quick.push(...events);
  // The count may be too low, because an event split between two chunks is not counted.
  await until('the other client has all', () => heard >= 1_990);
  assert.ok(slow.taken < 2_000, `${slow.taken} lines were read for a client that reads none`);
  await clock.advance(60_000);
  await until('the watch of the slow client has ended', () => slow.ended === 1);
  const before = heard;
  quick.push(line('MODIFIED', '2000'));
  await until('the other client continues', () => heard > before);
  reader.close();
  stuck.close();
});

test('ends watches cleanly when the server closes', async () => {
  await using harness = await FrontRig.open();
  const source = new LineSource();
  harness.api.lines = (_call, signal) => source.lines(signal);
  const watch = await openWatch(harness.port);
  await harness.front.close();
  await until('the end has arrived', () => watch.ended());
  assert.equal(watch.response.complete, true);
});
