import assert from 'node:assert/strict';
import { existsSync, writeSync } from 'node:fs';
import { describe, it } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { EventFd } from './event-fd.ts';

const isPossible = EventFd.open();
isPossible?.[Symbol.dispose]();
const skip = isPossible === undefined && 'Node cannot load the C library here';

function opened(): EventFd {
  const found = EventFd.open();
  assert.ok(found);
  return found;
}

const isOpen = ({ fd }: EventFd) => existsSync(`/proc/self/fd/${fd}`);

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await turn();
}

describe('EventFd', { skip }, () => {
  it('EventFd reports the first event and is closed', { timeout: 20_000 }, async () => {
    const event = opened();
    const { promise, resolve } = Promise.withResolvers<void>();
    event.onEvent(resolve);
    writeSync(event.fd, Uint8Array.of(3, 0, 0, 0, 0, 0, 0, 0));
    await promise;
    assert.ok(!isOpen(event));
    event[Symbol.dispose]();
  });

  it('EventFd stops waiting and reports nothing when disposed', { timeout: 20_000 }, async () => {
    const event = opened();
    event.onEvent(() => assert.fail('no event has occurred'));
    event[Symbol.dispose]();
    await until(() => !isOpen(event));
    event[Symbol.dispose]();
  });

  it('EventFd is closed immediately on disposal if nothing waits for events', () => {
    const event = opened();
    event[Symbol.dispose]();
    assert.ok(!isOpen(event));
    assert.throws(() => event.onEvent(() => {}), /called only once/);
  });
});
