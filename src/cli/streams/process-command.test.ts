import assert from 'node:assert/strict';
import { Duplex, PassThrough } from 'node:stream';
import { it } from 'node:test';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import type { SpdyConnection } from '../../protocols/spdy/index.ts';
import { runSession } from './process-command.ts';

/** Creates fake streams whose remote ends are controlled by the test and accept no input. */
function session(streams: { readonly stdin: boolean }) {
  const remote = new Map<string, Duplex>();
  const connection = {
    open({ streamType }: { readonly streamType: string }) {
      const stream = new Duplex({ read() {}, write() {} });
      remote.set(streamType, stream);
      return stream;
    },
    [Symbol.dispose]() {},
  } as unknown as SpdyConnection;
  const clock = new VirtualClock();
  const stdio = { stdin: new PassThrough(), stdout: new PassThrough(), stderr: new PassThrough() };
  const expected = { ...streams, stdout: true, stderr: true, tty: false };
  const options = { clock, streams: expected, terminal: 'as-is' } as const;
  const ended = runSession(connection, stdio, options, new AbortController().signal);
  const end = (name: string, text = '') => {
    if (text !== '') remote.get(name)?.push(text);
    remote.get(name)?.push(null);
  };
  return { clock, stdin: stdio.stdin, ended, end };
}

it('reports a missing exit status a few seconds after the output has ended, even if the runtime does not accept more input', async () => {
  const { clock, stdin, ended, end } = session({ stdin: true });
  stdin.write('y\n'.repeat(10_000));
  const refused = assert.rejects(ended, {
    code: 'STREAM_BROKEN',
    message: /sent no exit status within 5000 ms/,
  });
  await clock.advance(60_000);
  end('stdout');
  end('stderr');
  await new Promise(setImmediate);
  await clock.advance(6_000);
  await refused;
});

it('waits for a process that closes its output and keeps running', async () => {
  const { clock, ended, end } = session({ stdin: false });
  end('stdout');
  end('stderr');
  await new Promise(setImmediate);
  await clock.advance(600_000);
  end('error', '{"status":"Success"}');
  assert.deepEqual(await ended, { kind: 'exited', code: 0 });
});
