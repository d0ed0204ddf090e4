import assert from 'node:assert/strict';
import { apiResources } from '../../src/api/index.ts';
import { ApiRig } from '../fakes/api-rig.ts';
import { apiContract } from './api.contract.ts';
import type { ApiBackend } from './api-backend.ts';

async function simulated(): Promise<ApiBackend> {
  const harness = new ApiRig();
  harness.api.put(apiResources.nodes, { metadata: { name: 'n1' } });
  harness.api.put(apiResources.serviceAccounts, { metadata: { name: 'default', namespace: 'contract' } });
  return {
    name: 'the simulator',
    admin: harness.admin,
    node: harness.node,
    nodeName: 'n1',
    namespace: 'contract',
    done: (promise) => harness.done(promise),
    until: async (what, check) => {
      assert.ok(await harness.clock.advanceUntil(() => check() !== undefined, 60_000), what);
      return check() as NonNullable<ReturnType<typeof check>>;
    },
    [Symbol.asyncDispose]: async () => harness.api.close(),
  };
}

apiContract('the simulated API server', simulated);
