import { servedGroups } from '../../../cluster/output/recorded.ts';
import { ask, chapter, type Step } from '../step.ts';

type Json = Readonly<Record<string, unknown>>;
const aggregated = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json';

/**
 * The API groups that the embedded API serves; a full cluster has more. All servers list versions
 * in the same order.
 */
const served = new Set(servedGroups);

/** Resources that only a full cluster serves. */
const unserved = new Set([
  'componentstatuses',
  'podtemplates',
  'replicationcontrollers',
  'replicationcontrollers/scale',
  'replicationcontrollers/status',
  'clustertrustbundles',
  'csistoragecapacities',
  'volumeattributesclasses',
  'volumeattributesclasses/status',
]);

/** The parts of a resource list that do not depend on the server. */
function resources(body: unknown): unknown {
  const { resources: all = [], ...rest } = body as { readonly resources?: readonly Json[] };
  const known = all
    .filter(({ name }) => !unserved.has(String(name)))
    .map(({ storageVersionHash: _, ...resource }) => resource)
    .toSorted((a, b) => String(a['name']).localeCompare(String(b['name'])));
  return { ...rest, resources: known };
}

function groups(body: unknown): unknown {
  const { groups: all = [], ...rest } = body as { readonly groups?: readonly Json[] };
  const known = all.filter(({ name }) => served.has(String(name)));
  return { ...rest, groups: known.toSorted((a, b) => String(a['name']).localeCompare(String(b['name']))) };
}

function discovered(body: unknown): unknown {
  const { items = [], ...rest } = body as { readonly items?: readonly Json[] };
  const nameOf = ({ metadata }: Json) => String((metadata as Json | undefined)?.['name'] ?? '');
  const known = items.filter((item) => nameOf(item) === '' || served.has(nameOf(item)));
  return { ...rest, items: known.map(versions).toSorted((a, b) => nameOf(a).localeCompare(nameOf(b))) };
}

function versions(item: Json): Json {
  const all = (item['versions'] ?? []) as readonly Json[];
  const known = all.map((version) => ({
    ...version,
    resources: ((version['resources'] ?? []) as readonly Json[])
      .filter(({ resource }) => !unserved.has(String(resource)))
      .toSorted((a, b) => String(a['resource']).localeCompare(String(b['resource']))),
  }));
  return {
    ...item,
    metadata: { name: (item['metadata'] as Json | undefined)?.['name'] ?? '' },
    versions: known,
  };
}

/** Compares only the keys of the document, because every server has its own values. */
function keys(body: unknown): unknown {
  return Object.keys(body as Json).toSorted();
}

function documents(): readonly Step[] {
  const known = (body: unknown) => {
    const { paths = {} } = body as { readonly paths?: Json };
    return Object.keys(paths).filter(
      (path) => path === 'api/v1' || path === 'apis/coordination.k8s.io/v1' || path === 'version',
    );
  };
  const parts = (body: unknown) => {
    const { openapi, info } = body as Json;
    return [openapi, Object.keys((info ?? {}) as Json)];
  };
  return [
    ask('GET /openapi/v3', { compare: known }),
    ask('GET /openapi/v3/apis/coordination.k8s.io/v1', { compare: parts }),
    ask('GET /openapi/v3/apis/nothing.org/v1', { compare: () => '' }),
    ask('GET /openapi/v2', { compare: (body) => (body as Json)['swagger'] }),
    ask('GET /version', { compare: keys }),
    ask('GET /version', { as: 'nobody', compare: keys, what: 'the version for an anonymous caller' }),
  ];
}

function health(): readonly Step[] {
  const rows = [
    '/healthz',
    '/livez',
    '/readyz',
    '/healthz/ping',
    '/livez/ping',
    '/healthz/nothing',
    '/readyz?exclude=etcd',
  ];
  return [
    ...rows.map((path) => ask(`GET ${path}`)),
    ...['/healthz', '/livez', '/readyz'].map((path) =>
      ask(`GET ${path}`, { as: 'nobody', what: `${path} for anybody` }),
    ),
    ...['/api', '/apis', '/api/v1', '/openapi/v3', '/metrics', '/api/v1/pods'].map((path) =>
      ask(`GET ${path}`, { as: 'nobody', what: `${path} is for nobody` }),
    ),
    ask('GET /api', { as: { token: 'nonsense' }, what: 'an invalid token' }),
    ask('GET /.well-known/openid-configuration', { compare: keys }),
    ask('GET /openid/v1/jwks', { accept: 'application/jwk-set+json', compare: keys }),
  ];
}

export const discovery = chapter('discovery', [
  ask('GET /api', { compare: (body) => (body as Json)['versions'] }),
  ask('GET /api/v1', { compare: resources }),
  ask('GET /apis', { compare: groups }),
  ...[...served].flatMap((group) => [
    ask(`GET /apis/${group}`),
    ask(`GET /apis/${group}/v1`, { compare: resources }),
  ]),
  ask('GET /api', { accept: aggregated, compare: discovered, what: 'aggregated, of the core' }),
  ask('GET /apis', { accept: aggregated, compare: discovered, what: 'aggregated, of the groups' }),
  ask('GET /apis', {
    accept: 'application/json;g=apidiscovery.k8s.io;v=v3;as=APIGroupDiscoveryList',
    compare: () => '',
    what: 'aggregated in an unknown format',
  }),
  ...documents(),
  ...health(),
]);
