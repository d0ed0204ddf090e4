import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { podUid } from '../../pods/index.ts';
import type { RuntimePlacement } from '../cgroups/cgroup-values.ts';
import { formatCpuSet, parseCpuSet } from './cpu-set.ts';
import { encodeCpuCheckpoint, restoreCpuState } from './cpu-state.ts';
import { CpuTopology } from './cpu-topology.ts';
import { StaticCpuPolicy } from './static-cpu-policy.ts';

const options = {
  fullPcpusOnly: false,
  strictCpuReservation: false,
  preferAlignByUncoreCache: false,
  distributeAcrossNuma: false,
  alignBySocket: false,
  distributeAcrossCores: false,
};
const groups = new CpuTopology({
  cpus: new Map([0, 1, 2, 3].map((cpu) => [cpu, { numaNode: 0, socket: 0, core: cpu, uncoreCache: 0 }])),
});
const policy = new StaticCpuPolicy({ groups, reserved: { count: 1, cpus: undefined }, options });

const one = podUid('one');
const two = podUid('two');
const assigned = (...pods: readonly (readonly [typeof one, string])[]) =>
  new Map(pods.map(([uid, cpus]) => [uid, new Map([['main', parseCpuSet(cpus)]])]));
const noted = (policyName: string, defaultCpuSet: string, assignments = assigned()) =>
  encodeCpuCheckpoint({ policyName, state: { defaultCpuSet: parseCpuSet(defaultCpuSet), assignments } });

function seen(uid: typeof one, cpus: string, parts: Partial<RuntimePlacement> = {}): RuntimePlacement {
  const set = parseCpuSet(cpus);
  const time = { cpuShares: set.size * 1_024, cpuQuotaUs: -1, cpuPeriodUs: 100_000 };
  return { uid, container: 'main', cpus: set, ...time, mems: new Set(), memory: new Map(), ...parts };
}

async function restored(text: string | undefined, runtime: readonly RuntimePlacement[] = []) {
  let requestCount = 0;
  const { state, problem } = await restoreCpuState(text, policy, async () => {
    requestCount++;
    return runtime;
  });
  const own = [...state.assignments].map(([uid, sets]) => [uid, formatCpuSet(sets.get('main') ?? new Set())]);
  return { own, rest: formatCpuSet(state.defaultCpuSet), mended: problem, asked: requestCount };
}

describe('restored CPU assignments', () => {
  it('uses restored CPU assignments without querying the runtime', async () => {
    const text = noted('static', '0,3', assigned([one, '1-2']));
    assert.deepEqual(await restored(text), {
      own: [['one', '1-2']],
      rest: '0,3',
      mended: undefined,
      asked: 0,
    });
    assert.deepEqual(await restored(undefined), { own: [], rest: '0-3', mended: undefined, asked: 0 });
    assert.equal((await restored(noted('static', ''))).mended, undefined);
  });

  it('resets to the initial state if the checkpoint has no assignments, and its policy or its machine differs', async () => {
    for (const text of [noted('none', ''), noted('static', '0-7'), noted('static', '1-3')]) {
      const { own, rest, mended, asked } = await restored(text);
      assert.deepEqual([own, rest, asked], [[], '0-3', 0]);
      assert.notEqual(mended, undefined);
    }
  });

  it('keeps restored CPU assignments as far as the machine has the CPUs and the runtime has the containers', async () => {
    const text = noted('static', '0', assigned([one, '1'], [two, '2-7']));
    const { own, rest, mended } = await restored(text, [seen(one, '1'), seen(two, '2-3')]);
    assert.deepEqual([own, rest], [[['one', '1']], '0,2-3']);
    assert.match(mended ?? '', /doesn't match with CPUs in state/);
    assert.deepEqual((await restored(text, [])).own, [], 'the runtime has nothing of these pods');
  });

  it('derives the CPU assignments from the runtime if the checkpoint cannot be read', async () => {
    const runtime = [
      seen(one, '2-3'),
      seen(podUid('shares'), '0-1', { cpuShares: 2_048 }),
      seen(podUid('free'), ''),
      seen(podUid('small'), '1', { cpuShares: 512, cpuQuotaUs: 50_000 }),
      seen(two, '3'),
    ];
    const { own, rest, mended } = await restored('{"policyName":"static","def', runtime);
    assert.deepEqual([own, rest], [[['one', '2-3']], '0-1'], 'none reserved, none assigned twice');
    assert.notEqual(mended, undefined);
  });
});
