import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import {
  type ApiObject,
  apiResources,
  isApiCode,
  type JsonObject,
  type ObjectRef,
  PatchSchema,
  podStatusPatch,
  type WatchEvent,
} from '../../src/api/index.ts';
import type { Pod } from '../../src/kinds/index.ts';
import type { ErrorCode } from '../../src/lib/index.ts';
import type { ApiBackend } from './api-backend.ts';

type AnyPod = Pod & ApiObject;

const says = (code: ErrorCode) => (error: unknown) => {
  assert.ok(isApiCode(error, code), `${code} was expected, not ${error}`);
  return true;
};

/** The clients and objects of one test. */
class Scene {
  readonly backend: ApiBackend;
  readonly signal = new AbortController().signal;
  readonly #prefix: string;

  constructor(backend: ApiBackend, prefix: string) {
    this.backend = backend;
    this.#prefix = prefix;
  }

  ref(name: string, subresource?: string): ObjectRef {
    const { namespace } = this.backend;
    return {
      resource: apiResources.pods,
      namespace,
      name: this.#prefix + name,
      ...(subresource && { subresource }),
    };
  }

  create(name: string, metadata: object = {}): Promise<AnyPod> {
    const { admin, namespace, nodeName, done } = this.backend;
    const spec = {
      nodeName,
      containers: [{ name: 'main', image: 'busybox' }],
      terminationGracePeriodSeconds: 30,
    };
    const pod = { metadata: { name: this.#prefix + name, ...metadata }, spec } as ApiObject;
    return done(admin.create<AnyPod>({ resource: apiResources.pods, namespace }, pod, this.signal));
  }

  get(name: string): Promise<AnyPod> {
    return this.backend.done(this.backend.admin.get<AnyPod>(this.ref(name), {}, this.signal));
  }

  patchStatus(name: string, body: JsonObject): Promise<AnyPod> {
    const patch = { kind: 'strategic', body } as const;
    return this.backend.done(this.backend.node.patch<AnyPod>(this.ref(name, 'status'), patch, this.signal));
  }

  delete(
    name: string,
    options: { readonly gracePeriodSeconds?: number; readonly uid?: string },
  ): Promise<void> {
    return this.backend.done(this.backend.node.delete(this.ref(name), options, this.signal));
  }
}

/**
 * The properties of API servers on which kubeling relies. The same tests can run with a real and
 * with the simulated server.
 */
export function apiContract(name: string, open: () => Promise<ApiBackend>): void {
  describe(`the API contract on ${name}`, () => {
    let backend: ApiBackend | undefined;
    before(async () => {
      backend = await open();
    });
    after(async () => {
      await backend?.[Symbol.asyncDispose]();
    });
    let scenes = 0;
    const test = (what: string, run: (scene: Scene) => Promise<void>) =>
      it(what, async () => {
        assert.ok(backend, 'the back end should be open');
        await run(new Scene(backend, `c${++scenes}-`));
      });
    objects(test);
    statuses(test);
    deletions(test);
    watches(test);
    rights(test);
  });
}

type Register = (what: string, run: (scene: Scene) => Promise<void>) => void;

function objects(test: Register): void {
  test('a new pod has a UID, a resource version and a generation, and is Pending', async (scene) => {
    const pod = await scene.create('a');
    assert.match(pod.metadata?.uid ?? '', /^[0-9a-f-]{36}$/);
    assert.deepEqual([pod.metadata?.generation, pod.status?.phase], [1, 'Pending']);
    assert.equal((await scene.get('a')).metadata?.resourceVersion, pod.metadata?.resourceVersion);
  });

  test('creation of a second object with the same name is rejected', async (scene) => {
    await scene.create('a');
    await assert.rejects(scene.create('a'), says('API_CONFLICT'));
  });

  test('an update with an old resource version is a conflict', async (scene) => {
    const { admin, done } = scene.backend;
    const pod = await scene.create('a');
    const labelled = { ...pod, metadata: { ...pod.metadata, labels: { a: 'b' } } } as AnyPod;
    await done(admin.update(scene.ref('a'), labelled, scene.signal));
    await assert.rejects(done(admin.update(scene.ref('a'), pod, scene.signal)), says('API_CONFLICT'));
  });

  test('a request for a missing object returns not found', async (scene) => {
    await assert.rejects(scene.get('a'), says('API_NOT_FOUND'));
    await assert.rejects(scene.delete('a', {}), says('API_NOT_FOUND'));
  });

  test('the pages of a list together contain all objects', async (scene) => {
    const { admin, namespace, done } = scene.backend;
    for (const name of ['a', 'b', 'c']) await scene.create(name, { labels: { page: 'x' } });
    const query = { resource: apiResources.pods, namespace, labelSelector: 'page=x', limit: 2 };
    const first = await done(admin.list<AnyPod>(query, scene.signal));
    const rest = await done(
      admin.list<AnyPod>({ ...query, continue: first.metadata.continue }, scene.signal),
    );
    assert.deepEqual([first.items.length, rest.items.length, rest.metadata.continue], [2, 1, undefined]);
  });
}

function statuses(test: Register): void {
  test('a computed patch produces the status for which it was computed', async (scene) => {
    const pod = await scene.create('a');
    const status = {
      ...pod.status,
      phase: 'Running',
      conditions: [
        { type: 'Initialized', status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z' },
        { type: 'Ready', status: 'False', lastTransitionTime: '2026-01-01T00:00:00Z', reason: 'x' },
      ],
      podIP: '10.0.0.1',
      podIPs: [{ ip: '10.0.0.1' }],
    };
    const schema = new PatchSchema();
    const uid = pod.metadata?.uid ?? '';
    const write = async (expected: Pod['status']) => {
      const { status: seen } = await scene.get('a');
      const patch = podStatusPatch(schema, { uid, before: seen ?? {}, after: expected ?? {} });
      if (patch !== undefined) await scene.patchStatus('a', patch.body as JsonObject);
      const { status: made } = await scene.get('a');
      assert.equal(podStatusPatch(schema, { uid, before: made ?? {}, after: expected ?? {} }), undefined);
    };
    await write(status);
    await write({
      ...status,
      conditions: status.conditions.toReversed(),
      podIPs: [{ ip: '10.0.0.1' }, { ip: 'fd00::1' }],
    });
    const { podIP: _, podIPs: __, ...without } = status;
    await write({
      ...without,
      conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: '2026-01-01T00:00:01Z' }],
    });
  });

  test('a patch with another UID is rejected', async (scene) => {
    await scene.create('a');
    const body = { metadata: { uid: '00000000-0000-4000-8000-000000000000' }, status: { phase: 'Running' } };
    await assert.rejects(scene.patchStatus('a', body), says('API_INVALID'));
  });

  test('a patch without changes creates no new resource version', async (scene) => {
    const pod = await scene.create('a');
    const same = await scene.patchStatus('a', { status: { phase: 'Pending' } });
    assert.equal(same.metadata?.resourceVersion, pod.metadata?.resourceVersion);
  });

  test('an item without its merge key is rejected in a patch of a merged list', async (scene) => {
    await scene.create('a');
    await scene.patchStatus('a', { status: { conditions: [{ type: 'x/y', status: 'True' }] } });
    await assert.rejects(scene.patchStatus('a', { status: { conditions: [{ status: 'True' }] } }));
  });
}

function deletions(test: Register): void {
  test('a deletion first sets the deletion timestamp, and removes the pod when the node confirms it', async (scene) => {
    const pod = await scene.create('a');
    await scene.backend.done(scene.backend.admin.delete(scene.ref('a'), {}, scene.signal));
    const marked = await scene.get('a');
    assert.equal(marked.metadata?.deletionGracePeriodSeconds, 30);
    assert.ok(marked.metadata?.deletionTimestamp);
    assert.equal(marked.metadata.generation, 2);
    await scene.delete('a', { gracePeriodSeconds: 0, uid: pod.metadata?.uid ?? '' });
    await assert.rejects(scene.get('a'), says('API_NOT_FOUND'));
  });

  test('a later deletion can only shorten the grace period', async (scene) => {
    await scene.create('a');
    const { admin, done } = scene.backend;
    const grace = async (gracePeriodSeconds: number) => {
      await done(admin.delete(scene.ref('a'), { gracePeriodSeconds }, scene.signal));
      return (await scene.get('a')).metadata?.deletionGracePeriodSeconds;
    };
    assert.deepEqual([await grace(60), await grace(90), await grace(20)], [60, 60, 20]);
  });

  test('a deletion with another UID is a conflict', async (scene) => {
    await scene.create('a');
    const uid = '00000000-0000-4000-8000-000000000000';
    await assert.rejects(scene.delete('a', { gracePeriodSeconds: 0, uid }), says('API_CONFLICT'));
  });

  test('a deletion of a terminated pod removes it immediately', async (scene) => {
    await scene.create('a');
    await scene.patchStatus('a', { status: { phase: 'Succeeded' } });
    await scene.delete('a', {});
    await assert.rejects(scene.get('a'), says('API_NOT_FOUND'));
  });
}

function watches(test: Register): void {
  test('a watch delivers the existing objects first, and then the changes', async (scene) => {
    const { node, nodeName, until } = scene.backend;
    const pod = await scene.create('a');
    const events: WatchEvent<AnyPod>[] = [];
    const controller = new AbortController();
    const query = { resource: apiResources.pods, fieldSelector: `spec.nodeName=${nodeName}` };
    const read = async () => {
      const watch = node.watch<AnyPod>({ ...query, begin: 'initial', timeoutSeconds: 60 }, controller.signal);
      for await (const event of watch) events.push(event);
    };
    const over = assert.rejects(read());
    const seen = () =>
      events.filter(({ object }) => object.metadata?.name === pod.metadata?.name).map(({ type }) => type);
    const isEnd = ({ object }: WatchEvent<AnyPod>) =>
      object.metadata?.annotations?.['k8s.io/initial-events-end'] === 'true';
    await until('the objects there are have been told', () => events.find(isEnd));
    assert.deepEqual(seen(), ['ADDED']);
    await scene.patchStatus('a', { status: { phase: 'Running' } });
    await scene.delete('a', { gracePeriodSeconds: 0 });
    await until('the deletion was told', () => seen().at(-1) === 'DELETED' || undefined);
    assert.equal(seen()[1], 'MODIFIED');
    controller.abort(new Error('the test has received enough events'));
    await over;
  });

  test('a watch resumes after a resource version', async (scene) => {
    const { admin, namespace, until } = scene.backend;
    const pod = await scene.create('a');
    await scene.patchStatus('a', { status: { phase: 'Running' } });
    const types: string[] = [];
    const controller = new AbortController();
    const read = async () => {
      const query = {
        resource: apiResources.pods,
        namespace,
        begin: 'at-version',
        timeoutSeconds: 60,
      } as const;
      const fieldSelector = `metadata.name=${pod.metadata?.name}`;
      const from = { ...query, fieldSelector, resourceVersion: pod.metadata?.resourceVersion };
      for await (const { type } of admin.watch(from, controller.signal)) types.push(type);
    };
    const over = assert.rejects(read());
    await until('the change was told', () => types[0]);
    assert.equal(types[0], 'MODIFIED');
    controller.abort(new Error('the test has received enough events'));
    await over;
  });
}

function rights(test: Register): void {
  test('a node may not list all pods, change a spec, or relabel a pod', async (scene) => {
    const { node, done } = scene.backend;
    const denied = says('API_FORBIDDEN');
    await scene.create('a');
    await assert.rejects(done(node.list({ resource: apiResources.pods }, scene.signal)), denied);
    const patch = { kind: 'strategic', body: { spec: { activeDeadlineSeconds: 5 } } } as const;
    await assert.rejects(done(node.patch(scene.ref('a'), patch, scene.signal)), denied);
    await assert.rejects(scene.patchStatus('a', { metadata: { labels: { x: 'y' } } }), denied);
  });

  test('a node may read only secrets that its pods need', async (scene) => {
    const { admin, node, namespace, done } = scene.backend;
    const at = { resource: apiResources.secrets, namespace };
    await done(admin.create(at, { metadata: { name: 'unused' } }, scene.signal));
    await assert.rejects(done(node.get({ ...at, name: 'unused' }, {}, scene.signal)), says('API_FORBIDDEN'));
  });

  test('a node may create only mirror pods', async (scene) => {
    const { node, namespace, nodeName, done } = scene.backend;
    const spec = { nodeName, containers: [{ name: 'main', image: 'busybox' }] };
    const pod = { metadata: { name: 'plain' }, spec } as ApiObject;
    const call = node.create({ resource: apiResources.pods, namespace }, pod, scene.signal);
    await assert.rejects(done(call), says('API_FORBIDDEN'));
  });

  test('a node may access only its own lease', async (scene) => {
    const { node, nodeName, done } = scene.backend;
    const at = { resource: apiResources.leases, namespace: 'kube-node-lease' };
    const lease = (name: string) => ({ metadata: { name }, spec: { holderIdentity: nodeName } }) as ApiObject;
    await assert.rejects(done(node.create(at, lease('another'), scene.signal)), says('API_FORBIDDEN'));
    const created = await done(node.create<ApiObject>(at, lease(nodeName), scene.signal));
    const renewed = await done(
      node.update<ApiObject>(
        { ...at, name: nodeName },
        { ...created, spec: { holderIdentity: nodeName, leaseDurationSeconds: 40 } } as ApiObject,
        scene.signal,
      ),
    );
    assert.notEqual(renewed.metadata?.resourceVersion, created.metadata?.resourceVersion);
    await assert.rejects(
      done(node.update({ ...at, name: nodeName }, created, scene.signal)),
      says('API_CONFLICT'),
    );
  });
}
