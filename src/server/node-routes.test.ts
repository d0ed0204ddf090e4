import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../test/fakes/virtual-clock.ts';
import { MetricRegistry } from '../lib/index.ts';
import { type Pod, podUid } from '../pods/index.ts';
import { checkpointLocation, checkpointRoute } from './checkpoint.ts';
import { HealthSlis } from './health.ts';
import { HttpMetricFamilies } from './http-metrics.ts';
import { readOnlyRoutes, withoutDebugging } from './node-servers.ts';
import { choose, disabledRoute, type Request, type Response, type Route } from './router.ts';
import { configzRoute, debugFlagsRoute, imagesRoute } from './status-pages.ts';
import { systemLogsRoute } from './system-logs/logs-route.ts';

const { signal } = new AbortController();
const pod: Pod = {
  metadata: { name: 'web', namespace: 'default', uid: podUid('u1') },
  spec: { containers: [{ name: 'main' }], initContainers: [{ name: 'init' }] } as Pod['spec'],
  status: {},
};

async function ask(route: Route, target: string, method = 'GET', body = ''): Promise<Response> {
  const url = new URL(target, 'http://x');
  const choice = choose([route], method, url.pathname);
  if (choice.kind === 'refused') return choice.response;
  const request: Request = {
    method,
    path: url.pathname,
    params: choice.params,
    query: url.searchParams,
    headers: {},
    body: async () => body,
  };
  return await choice.route.answer(request, signal);
}

async function said(route: Route, target: string, method = 'GET', body = ''): Promise<string> {
  const response = await ask(route, target, method, body);
  return `${response.status} ${String(response.body).trim()}`;
}

test('checkpoints a container when namespace, pod and container exist', async () => {
  const given: (number | undefined)[] = [];
  const route = checkpointRoute({
    getPodByName: (namespace, name) => (namespace === 'default' && name === 'web' ? pod : undefined),
    checkpoint: async (_pod, container, timeout) => {
      if (container === 'init') throw new Error('the runtime has no checkpoint support');
      given.push(timeout);
      return '/c.tar';
    },
  });
  const post = (target: string) => said(route, target, 'POST');
  assert.equal(await post('/checkpoint/default/web/main'), '200 {"items":["/c.tar"]}');
  assert.equal(await post('/checkpoint/default/web/main?timeout=1&timeout=7'), '200 {"items":["/c.tar"]}');
  assert.deepEqual(given, [undefined, 7]);
  assert.equal(await post('/checkpoint/default/none/main'), '404 pod does not exist');
  assert.equal(await post('/checkpoint/default/web/none'), '404 container none does not exist');
  assert.equal(
    await post('/checkpoint/default/web/main?timeout=x'),
    '404 cannot parse value of timeout parameter',
  );
  assert.equal(
    await post('/checkpoint/default/web/init'),
    '500 checkpointing of default/web/init failed (the runtime has no checkpoint support)',
  );
  assert.equal((await ask(route, '/checkpoint/default/web/main')).status, 405);
});

test('uses the names of pod and container in the path of a checkpoint', () => {
  const at = checkpointLocation('/root/checkpoints', pod, 'main', Date.UTC(2024, 0, 2, 3, 4, 5, 678));
  assert.equal(at, '/root/checkpoints/checkpoint-web_default-main-2024-01-02T03:04:05Z.tar');
});

test('serves the configuration with any HTTP method', async () => {
  const route = configzRoute(() => ({ kind: 'KubeletConfiguration', syncFrequency: '1m0s' }));
  const body = '200 {"kubeletconfig":{"kind":"KubeletConfiguration","syncFrequency":"1m0s"}}';
  assert.equal(await said(route, '/configz'), body);
  assert.equal(await said(route, '/configz', 'POST'), body);
});

test('serves the list of images only to clients with debug access', async () => {
  const route = imagesRoute(() => [{ names: ['web:1'], sizeBytes: 7 }]);
  assert.equal(await said(route, '/debug/images'), '200 {"images":[{"names":["web:1"],"sizeBytes":7}]}');
  for (const open of [withoutDebugging([route]), readOnlyRoutes([route])])
    assert.ok(open.every(({ path }) => path !== route.path));
});

test('sets the log level by a PUT request with a number', async () => {
  const levels: number[] = [];
  const route = debugFlagsRoute({ setLevel: (level) => levels.push(level) });
  const path = '/debug/flags/v';
  assert.equal(await said(route, path, 'PUT', '4\n'), '200 successfully set klog.logging.verbosity to 4');
  assert.match(await said(route, path, 'PUT', 'four'), /^400 failed set klog\.logging\.verbosity "four"/);
  assert.equal(await said(route, path), '406 unsupported http method');
  assert.deepEqual(levels, [4]);
  assert.equal(await said(debugFlagsRoute('disabled'), path, 'PUT', '4'), '405 flags endpoint is disabled.');
});

test('serves no host logs when they are disabled in the configuration', async () => {
  for (const path of ['/logs', '/logs/', '/logs/syslog']) {
    assert.equal(await said(systemLogsRoute('disabled'), path), '405 logs endpoint is disabled.');
  }
});

test('counts results of health checks until the counters are reset', async () => {
  let problem: string | undefined;
  const slis = new HealthSlis(() => {});
  const [check] = slis.observed([{ name: 'ping', problem: () => problem }], 'healthz');
  check?.problem();
  problem = 'ill';
  assert.equal(check?.problem(), 'ill');
  const page = await said(slis.route, '/metrics/slis');
  assert.match(page, /^kubernetes_healthcheck\{name="ping",type="healthz"\} 0$/m);
  assert.match(page, /^kubernetes_healthchecks_total\{name="ping",type="healthz",status="success"\} 1$/m);
  assert.match(page, /^kubernetes_healthchecks_total\{name="ping",type="healthz",status="error"\} 1$/m);
  assert.equal(await said(slis.route, '/metrics/slis', 'DELETE'), '200 metrics reset');
  assert.doesNotMatch(await said(slis.route, '/metrics/slis'), /ping/);
});

const all = [
  '/healthz',
  '/healthz/',
  '/pods',
  '/metrics',
  '/metrics/slis',
  '/stats/summary',
  '/runningpods/',
].concat(
  ...[
    '/configz',
    '/logs/',
    '/debug/flags/v',
    '/debug/flight',
    '/checkpoint/{a}/{b}/{c}',
    '/exec/{a}/{b}/{c}',
  ],
);
const routes = all.map((path): Route => ({ ...disabledRoute(path, 'reached'), methods: 'any' }));

function open(list: readonly Route[], method: string): readonly string[] {
  return all.filter((path) => {
    const choice = choose(list, method, path.replaceAll(/[{}]/g, ''));
    return (
      choice.kind === 'found' &&
      routes.some(
        ({ path: known }) => known === choice.route.path && known !== '/logs/' && known !== '/runningpods/',
      )
    );
  });
}

test('serves only harmless routes on the read-only port and when debugging handlers are disabled', () => {
  const harmless = ['/healthz', '/healthz/', '/pods', '/metrics', '/metrics/slis', '/stats/summary'];
  assert.deepEqual(open(withoutDebugging(routes), 'DELETE'), harmless);
  assert.deepEqual(open(readOnlyRoutes(routes), 'GET'), harmless);
  assert.deepEqual(open(readOnlyRoutes(routes), 'DELETE'), []);
});

test('counts requests in flight and finished requests by method, path and server', async () => {
  const clock = new VirtualClock();
  const registry = new MetricRegistry({ onError: () => {} });
  const metrics = new HttpMetricFamilies(registry, clock).of('readwrite');
  const end = metrics.begin('GET', '/exec/a/b/c');
  metrics.begin('BREW', '/coffee')();
  metrics.begin('GET', '/metrics/cadvisor')();
  const page = await registry.expose(signal);
  assert.match(
    page,
    /inflight_requests\{method="GET",path="exec",server_type="readwrite",long_running="true"\} 1/,
  );
  assert.match(page, /total\{method="other",path="other",server_type="readwrite",long_running="false"\} 1/);
  assert.match(page, /total\{method="GET",path="metrics\/cadvisor",/);
  end();
  assert.match(await registry.expose(signal), /inflight_requests\{method="GET",path="exec",[^}]*\} 0/);
});
