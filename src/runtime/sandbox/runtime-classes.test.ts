import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aPod } from '../../../test/fakes/pods.ts';
import { StatusResponse } from '../../cri/index.ts';
import type { MessageInit } from '../../protocols/protobuf/index.ts';
import { handlersAsClasses, runtimeHandlerOf } from './runtime-classes.ts';
import { podUsers } from './user-namespaces.ts';

const { signal } = new AbortController();
const classes = (response: MessageInit<StatusResponse>) =>
  handlersAsClasses({ status: async () => StatusResponse.create(response) });
const pod = (runtimeClassName?: string) =>
  aPod({ spec: runtimeClassName === undefined ? {} : { runtimeClassName } });

test('a pod without a RuntimeClass uses the default handler without a lookup', async () => {
  const nobody = { find: () => Promise.reject(new Error('asked')) };
  assert.equal(await runtimeHandlerOf(pod(), nobody, signal), '');
  assert.equal(await runtimeHandlerOf(pod(''), nobody, signal), '');
});

test('each handler that the runtime reports can be used as a RuntimeClass', async () => {
  const reported = classes({ runtimeHandlers: [{ name: '' }, { name: 'runc' }, { name: 'crun' }] });
  assert.equal(await runtimeHandlerOf(pod('crun'), reported, signal), 'crun');
  await assert.rejects(runtimeHandlerOf(pod('gvisor'), reported, signal), {
    code: 'SANDBOX_CONFIG',
    message:
      'failed to lookup RuntimeClass gvisor: runtimeclass.node.k8s.io "gvisor" not found: on a standalone node each handler of the runtime is a class, and the runtime has crun, runc',
  });
});

test('reads the handlers of containerd before 2.0 from its configuration', async () => {
  const config = JSON.stringify({ containerd: { runtimes: { runc: {}, crun: {} } } });
  const reported = classes({ info: { config } });
  assert.equal(await runtimeHandlerOf(pod('runc'), reported, signal), 'runc');
  await assert.rejects(runtimeHandlerOf(pod('gvisor'), reported, signal), { code: 'SANDBOX_CONFIG' });
});

test('uses the RuntimeClass name as handler when the runtime reports no handlers', async () => {
  for (const info of [{}, { config: 'no json' }, { config: '{}' }])
    assert.equal(await runtimeHandlerOf(pod('kata'), classes({ info }), signal), 'kata');
});

test('rejects a pod with a user namespace when its runtime handler does not support them', async () => {
  const able = { userNamespaces: true, recursiveReadOnly: false };
  const unable = { userNamespaces: false, recursiveReadOnly: false };
  const namespaces = { of: async () => ({ mode: 'POD' as const }) };
  const users = (handler: string, handlers: ReadonlyMap<string, typeof able>) =>
    podUsers(aPod({ spec: { hostUsers: false } }), handler, { handlers: () => handlers, namespaces });
  assert.deepEqual(await users('', new Map([['', able]])), { mode: 'POD' });
  const refused = (message: string) => ({ code: 'SANDBOX_CONFIG', message });
  const start = "can't set `spec.hostUsers: false`,";
  await assert.rejects(users('', new Map()), refused(`${start} runtime does not support user namespaces`));
  await assert.rejects(
    users('crun', new Map([['crun', unable]])),
    refused(`${start} RuntimeClass handler "crun" does not support user namespaces`),
  );
  await assert.rejects(
    users('kata', new Map([['', able]])),
    refused(
      `${start} RuntimeClass handler "kata" does not support user namespaces: the runtime does not report the handler "kata"`,
    ),
  );
  assert.deepEqual(await podUsers(aPod(), '', { handlers: () => new Map(), namespaces }), { mode: 'NODE' });
});
