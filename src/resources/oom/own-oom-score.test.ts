import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { collectLogs } from '../../lib/index.ts';
import { OwnOomScore } from './own-oom-score.ts';

describe('oom_score_adj of the kubelet', () => {
  it('sets oom_score_adj of the kubelet to the configured value', async () => {
    const written: string[] = [];
    const { logger } = collectLogs(new VirtualClock());
    const own = new OwnOomScore({ score: -999, logger, write: async (score) => void written.push(score) });
    assert.equal(await own.apply(), 'set');
    assert.deepEqual(written, ['-999']);
  });

  it('logs once if oom_score_adj of the kubelet cannot be lowered', async () => {
    const { logger, records } = collectLogs(new VirtualClock());
    const write = () =>
      Promise.reject(Object.assign(new Error('EACCES: permission denied'), { code: 'EACCES' }));
    const own = new OwnOomScore({ score: -999, logger, write });
    assert.deepEqual([await own.apply(), await own.apply()], ['refused', 'refused']);
    assert.equal(records.size, 1);
    assert.equal(records.toArray()[0]?.severity, 'warning');
  });
});
