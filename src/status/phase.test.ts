import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { aPod } from '../../test/fakes/pods.ts';
import type { Container, ContainerStatus } from '../kinds/index.ts';
import { annotations, type Pod } from '../pods/index.ts';
import { type Phase, podPhase } from './phase.ts';

/**
 * States of containers in the test table; `!` after a name means that the container waits to
 * restart.
 */
type Shown = 'missing' | 'waiting' | 'running' | 'unstarted' | `exit ${number}` | `again ${number}`;
type Policy = 'Always' | 'OnFailure' | 'Never';

function statusOf(name: string, shown: Shown): readonly ContainerStatus[] {
  const base = { name, ready: false, restartCount: 0, image: '', imageID: '' };
  const [word, code] = shown.split(' ');
  const terminated = { exitCode: Number(code) };
  switch (word) {
    case 'missing':
      return [];
    case 'waiting':
      return [{ ...base, state: { waiting: {} } }];
    case 'running':
      return [{ ...base, started: true, state: { running: {} } }];
    case 'unstarted':
      return [{ ...base, started: false, state: { running: {} } }];
    case 'exit':
      return [{ ...base, state: { terminated } }];
    default:
      return [{ ...base, state: { waiting: {} }, lastState: { terminated } }];
  }
}

interface Row {
  readonly init?: readonly Shown[];
  readonly sidecars?: readonly Shown[];
  readonly main: readonly Shown[];
  readonly policy?: Policy;
  readonly terminal?: boolean;
  readonly initialized?: boolean;
  readonly static?: boolean;
  readonly container?: Partial<Container>;
  readonly phase: Phase;
}

function named(prefix: string, shown: readonly Shown[] = []): readonly [string, Shown][] {
  return shown.map((each, index) => [`${prefix}${index}`, each]);
}

function podOf(row: Row): Pod {
  const containers = named('c', row.main).map(([name]) => ({ name, ...row.container }));
  const init = named('i', row.init).map(([name]) => ({ name }));
  const sidecars = named('s', row.sidecars).map(([name]) => ({ name, restartPolicy: 'Always' }));
  return aPod({
    metadata: row.static === true ? { annotations: { [annotations.source]: 'file' } } : {},
    spec: { containers, initContainers: [...init, ...sidecars], restartPolicy: row.policy ?? 'Always' },
  });
}

const rows: readonly Row[] = [
  { main: ['missing'], phase: 'Pending' },
  { main: ['waiting'], phase: 'Pending' },
  { main: ['running'], phase: 'Running' },
  { main: ['running', 'waiting'], phase: 'Pending' },
  { main: ['running', 'missing'], phase: 'Pending' },
  { main: ['running', 'exit 1'], policy: 'Never', phase: 'Running' },
  { main: ['running', 'again 1'], phase: 'Running' },
  { main: ['exit 0'], phase: 'Running' },
  { main: ['exit 1'], phase: 'Running' },
  { main: ['again 1'], phase: 'Running' },
  { main: ['exit 0'], policy: 'OnFailure', phase: 'Succeeded' },
  { main: ['exit 1'], policy: 'OnFailure', phase: 'Running' },
  { main: ['exit 0', 'exit 1'], policy: 'OnFailure', phase: 'Running' },
  { main: ['again 1'], policy: 'OnFailure', phase: 'Running' },
  { main: ['exit 0', 'exit 0'], policy: 'Never', phase: 'Succeeded' },
  { main: ['exit 0', 'exit 1'], policy: 'Never', phase: 'Failed' },
  { main: ['again 0'], policy: 'Never', phase: 'Failed' },
  { main: ['exit 0', 'missing'], policy: 'Never', phase: 'Pending' },
  { main: ['exit 0'], terminal: true, phase: 'Succeeded' },
  { main: ['exit 137'], terminal: true, phase: 'Failed' },
  { main: ['exit 0'], terminal: true, static: true, phase: 'Running' },
  { main: ['exit 0'], terminal: true, static: true, policy: 'Never', phase: 'Succeeded' },
  { main: ['waiting'], init: ['missing'], phase: 'Pending' },
  { main: ['waiting'], init: ['running'], phase: 'Pending' },
  { main: ['waiting'], init: ['exit 0'], phase: 'Pending' },
  { main: ['running'], init: ['exit 0'], phase: 'Running' },
  { main: ['running'], init: ['running'], phase: 'Pending' },
  { main: ['waiting'], init: ['exit 1'], phase: 'Pending' },
  { main: ['waiting'], init: ['exit 1'], policy: 'OnFailure', phase: 'Pending' },
  { main: ['waiting'], init: ['exit 1'], policy: 'Never', phase: 'Failed' },
  { main: ['waiting'], init: ['again 1'], policy: 'Never', phase: 'Failed' },
  { main: ['waiting'], init: ['again 1'], phase: 'Pending' },
  { main: ['running'], sidecars: ['running'], phase: 'Running' },
  { main: ['waiting'], sidecars: ['unstarted'], phase: 'Pending' },
  { main: ['running'], sidecars: ['unstarted'], initialized: false, phase: 'Pending' },
  { main: ['running'], sidecars: ['unstarted'], initialized: true, phase: 'Running' },
  { main: ['running'], sidecars: ['missing'], phase: 'Pending' },
  { main: ['running'], sidecars: ['again 1'], phase: 'Running' },
  { main: ['running'], sidecars: ['exit 1'], phase: 'Running' },
  { main: ['exit 0'], sidecars: ['running'], policy: 'Never', phase: 'Running' },
  { main: ['exit 0'], sidecars: ['exit 137'], policy: 'Never', phase: 'Succeeded' },
  { main: ['exit 42'], policy: 'Never', container: { restartPolicy: 'Always' }, phase: 'Running' },
  { main: ['exit 42'], policy: 'Always', container: { restartPolicy: 'Never' }, phase: 'Failed' },
  {
    main: ['exit 42'],
    policy: 'Never',
    container: {
      restartPolicy: 'Never',
      restartPolicyRules: [{ action: 'Restart', exitCodes: { operator: 'In', values: [42] } }],
    },
    phase: 'Running',
  },
];

describe('the pod phase computed by podPhase', () => {
  for (const row of rows) {
    const { phase, ...given } = row;
    it(`the phase is ${phase} for ${JSON.stringify(given)}`, () => {
      const pod = podOf(row);
      const shown = [...named('i', row.init), ...named('s', row.sidecars), ...named('c', row.main)];
      const statuses = shown.flatMap(([name, one]) => statusOf(name, one));
      const hasStartedRegular = row.initialized ?? false;
      assert.equal(podPhase({ pod, statuses, isTerminal: row.terminal ?? false, hasStartedRegular }), phase);
    });
  }
});
