import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { settle, VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { collectLogs } from '../../lib/index.ts';
import { WalCheckpointer } from './maintenance.ts';
import type { StoreClient } from './store-thread.ts';

const megabyte = 1024 * 1024;

function checkpointsOnOrder() {
  const clock = new VirtualClock();
  const requests: (() => void)[] = [];
  const { logger, records } = collectLogs(clock);
  const call = () => new Promise<void>((resolve) => requests.push(resolve));
  const end = new AbortController();
  const checkpoints = new WalCheckpointer(
    { thread: { call } as unknown as StoreClient, clock, logger },
    end.signal,
  );
  const look = (aheadBytes: number) =>
    checkpoints.onFileStats({ objects: 0, logRows: 0, logBytes: 0, fileBytes: 0, walBytes: 0, aheadBytes });
  return { clock, asked: requests, records, end, look };
}

describe('write-ahead log', () => {
  it('the write-ahead log is checkpointed when there are no writes', async () => {
    const { clock, asked, look } = checkpointsOnOrder();
    for (let round = 0; round < 10; round++) {
      look(2 * megabyte);
      await clock.advance(50);
    }
    assert.equal(asked.length, 0);
    await clock.advance(100);
    assert.equal(asked.length, 1);
  });

  it('a small write-ahead log is not checkpointed', async () => {
    const { clock, asked, look } = checkpointsOnOrder();
    look(megabyte / 2);
    await clock.advance(60_000);
    assert.equal(asked.length, 0);
  });

  it('the write-ahead log is checkpointed under constant load, by one call at a time', async () => {
    const { asked, look } = checkpointsOnOrder();
    look(4 * megabyte);
    look(5 * megabyte);
    assert.equal(asked.length, 1);
    asked[0]?.();
    await settle();
    look(4 * megabyte);
    assert.equal(asked.length, 2);
  });

  it('the write-ahead log is not checkpointed after the abort', async () => {
    const { clock, asked, look, end } = checkpointsOnOrder();
    look(2 * megabyte);
    end.abort(new Error('the end'));
    look(20 * megabyte);
    await clock.advance(1_000);
    assert.equal(asked.length, 0);
  });
});
