import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RecordedJournal } from '../../../test/fakes/journal.ts';
import { podOf } from '../../../test/fakes/pod-runtime-rig.ts';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import type { ExecSyncResponse } from '../../cri/index.ts';
import type { LifecycleHandler } from '../../kinds/index.ts';
import {
  cancelledError,
  collectLogs,
  type HttpRequest,
  type HttpResponse,
  KubelingError,
  MetricRegistry,
} from '../../lib/index.ts';
import { hookMetrics, LifecycleHooks, type LifecycleHooksDeps } from './lifecycle-hooks.ts';

const pod = podOf({ a: {} });
const target = {
  pod,
  container: { name: 'a', ports: [{ name: 'web', containerPort: 8080 }] },
  containerId: 'id-1',
};
const ok: HttpResponse = { status: 200, headers: {}, body: Buffer.alloc(0) };

function aNode(deps: Partial<LifecycleHooksDeps> & { readonly exec?: Partial<ExecSyncResponse> } = {}) {
  const clock = new VirtualClock();
  const logs = collectLogs(clock);
  const journal = new RecordedJournal();
  const metrics = new MetricRegistry({ onError: () => {} });
  const requests: HttpRequest[] = [];
  const executed: unknown[] = [];
  const { exec, dial = async () => ok, ...rest } = deps;
  const hooks = new LifecycleHooks({
    clock,
    journal,
    logger: logs.logger,
    observer: hookMetrics(metrics),
    cri: {
      execSync: async (request) => {
        executed.push(request);
        return { exitCode: 0, stdout: Buffer.alloc(0), stderr: Buffer.alloc(0), ...exec } as ExecSyncResponse;
      },
    },
    podIps: async () => ['10.0.0.7', 'fd00::7'],
    ...rest,
    dial: (request, limit, signal) => {
      requests.push(request);
      return dial(request, limit, signal);
    },
  });
  const controller = new AbortController();
  const run = (hook: LifecycleHandler) => hooks.run(hook, target, controller.signal);
  return { clock, logs, journal, metrics, asked: requests, executed, controller, run };
}

describe('lifecycle hook', () => {
  it('an exec hook runs its command in the container without a time limit', async () => {
    const { run, executed } = aNode();
    await run({ exec: { command: ['echo', '$(X)'] } });
    assert.deepEqual(executed, [{ containerId: 'id-1', cmd: ['echo', '$(X)'], timeout: 0n }]);
  });

  it('an exec hook fails when its command fails; the output is only logged', async () => {
    const { run, logs } = aNode({ exec: { exitCode: 3, stderr: Buffer.from('out of space') } });
    await assert.rejects(run({ exec: { command: ['sh', '-c', 'hush-hush'] } }), (error: KubelingError) => {
      assert.equal(error.code, 'HOOK_FAILED');
      assert.equal(error.message, "command 'sh' with 2 arguments exited with 3");
      assert.doesNotMatch(JSON.stringify([error.message, error.details]), /out of space/);
      return true;
    });
    const logged = JSON.stringify(logs.records.toArray());
    assert.match(logged, /out of space/);
    assert.doesNotMatch(logged, /hush/);
  });

  it('an httpGet hook calls the pod over HTTP and accepts any response', async () => {
    for (const status of [200, 404, 500]) {
      const { run, asked } = aNode({ dial: async () => ({ ...ok, status }) });
      await run({ httpGet: { port: 'web', path: '/bye' } });
      const { scheme, host, port, target: path, headers } = asked[0] as HttpRequest;
      assert.deepEqual([scheme, host, port, path], ['http', '10.0.0.7', 8080, '/bye']);
      assert.deepEqual(headers, [
        ['User-Agent', 'kube-lifecycle/1.36'],
        ['Accept', '*/*'],
      ]);
    }
  });

  it('an httpGet hook fails without a server, a pod address or a known port', async () => {
    const refused = aNode({ dial: () => Promise.reject(new Error('connect ECONNREFUSED')) });
    await assert.rejects(refused.run({ httpGet: { port: 80 } }), /ECONNREFUSED/);
    const lost = aNode({ podIps: async () => [] });
    await assert.rejects(lost.run({ httpGet: { port: 80 } }), { code: 'HOOK_NO_ADDRESS' });
    await lost.run({ httpGet: { port: 80, host: 'db' } });
    await assert.rejects(aNode().run({ httpGet: { port: 'api' } }), { code: 'ACTION_PORT' });
  });

  it('an https hook is retried over HTTP without credentials when the server does not use TLS, with an event', async () => {
    const dial: LifecycleHooksDeps['dial'] = async ({ scheme }) => {
      if (scheme === 'https') throw new KubelingError('HTTP_NOT_TLS', 'plain');
      return ok;
    };
    const { run, asked, journal, metrics } = aNode({ dial });
    const httpHeaders = [
      { name: 'authorization', value: 'Basic x' },
      { name: 'X', value: '1' },
    ];
    await run({ httpGet: { port: 443, scheme: 'HTTPS', httpHeaders } });
    assert.deepEqual(
      asked.map(({ scheme, headers }) => [scheme, headers.map(([name]) => name)]),
      [
        ['https', ['authorization', 'X', 'User-Agent', 'Accept']],
        ['http', ['X', 'User-Agent', 'Accept']],
      ],
    );
    assert.match(
      await metrics.expose(new AbortController().signal),
      /kubelet_lifecycle_handler_http_fallbacks_total 1/,
    );
    assert.deepEqual(journal.events, [
      {
        pod: 'web',
        type: 'Warning',
        reason: 'LifecycleHTTPFallback',
        message: 'request to HTTPS lifecycle hook 10.0.0.7:443 got HTTP response, retry with HTTP succeeded',
      },
    ]);
  });

  it('an https hook reports the first error when HTTP fails too', async () => {
    const dial: LifecycleHooksDeps['dial'] = async ({ scheme }) => {
      throw scheme === 'https' ? new KubelingError('HTTP_NOT_TLS', 'plain') : new Error('gone');
    };
    const { run, journal } = aNode({ dial });
    await assert.rejects(run({ httpGet: { port: 443, scheme: 'HTTPS' } }), { code: 'HTTP_NOT_TLS' });
    assert.deepEqual(journal.events, []);
  });

  it('a sleep hook sleeps for its duration, which may be zero', async () => {
    const { run, clock } = aNode();
    for (const seconds of [0, 7]) {
      const startMs = clock.monotonicMs();
      let ended = false;
      const sleeping = run({ sleep: { seconds } }).then(() => {
        ended = true;
      });
      assert.ok(await clock.advanceUntil(() => ended, 60_000));
      await sleeping;
      assert.equal(clock.monotonicMs() - startMs, seconds * 1_000);
    }
  });

  it('a hook of kind tcpSocket or without a kind fails', async () => {
    await assert.rejects(aNode().run({ tcpSocket: { port: 80 } }), { code: 'HOOK_UNKNOWN' });
    await assert.rejects(aNode().run({}), { code: 'HOOK_UNKNOWN' });
  });

  it('a hook ends when it is cancelled', async () => {
    const { run, controller, clock, metrics } = aNode();
    const sleeping = run({ sleep: { seconds: 100 } });
    controller.abort(cancelledError('enough'));
    await assert.rejects(sleeping, /enough/);
    assert.match(
      await metrics.expose(new AbortController().signal),
      /kubelet_sleep_action_terminated_early_total 1/,
    );
    assert.equal(clock.pendingTimers, 0);
  });

  it("a hook is limited by the node's hook timeout", async () => {
    const { run, clock } = aNode({ limitMs: 5_000 });
    const sleeping = run({ sleep: { seconds: 100 } });
    sleeping.catch(() => {});
    await clock.advance(5_000);
    await assert.rejects(sleeping, { code: 'DEADLINE_EXCEEDED' });
    assert.equal(clock.pendingTimers, 0);
  });
});
