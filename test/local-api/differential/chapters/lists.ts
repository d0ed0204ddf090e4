import { ask, chapter, create, type Step } from '../step.ts';
import { boundPod, configMap, core } from './objects.ts';

const maps = `${core}/configmaps`;

const six: readonly Step[] = ['a', 'b', 'c', 'd', 'e', 'f'].map((name, at) =>
  create(
    maps,
    configMap(name, { at: String(at) }, { labels: { in: 'lists', half: at < 3 ? 'first' : 'second' } }),
    {
      keep: name,
    },
  ),
);

function pages(): readonly Step[] {
  return [
    ask(`GET ${maps}?limit=3`, { keep: 'page' }),
    ask(`GET ${maps}?limit=3&continue=<page.metadata.continue>`, { keep: 'next' }),
    ask(`GET ${maps}?limit=3&continue=<next.metadata.continue>`),
    ask(`GET ${maps}?limit=2&labelSelector=in=lists`, { keep: 'some' }),
    ask(`DELETE ${maps}/e`, { what: 'an object is deleted between two pages' }),
    create(maps, configMap('cc', {}, { labels: { in: 'lists' } }), {
      what: 'an object is created between two pages',
    }),
    ask(`GET ${maps}?labelSelector=in=lists&continue=<some.metadata.continue>`, {
      what: 'the next page has the same version',
    }),
    ask(`GET ${maps}?limit=2&labelSelector=in=lists&continue=<some.metadata.continue>`),
    ask(`GET ${maps}?limit=1&continue=<page.metadata.continue>&resourceVersion=<a.metadata.resourceVersion>`),
    ask(`GET ${maps}?limit=1&continue=<page.metadata.continue>&resourceVersion=0`),
    ask(`GET ${maps}?limit=1&continue=nonsense`),
    ask(`GET ${maps}?limit=1&continue=bm9uc2Vuc2U`),
    ask(`GET ${maps}?continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiIuLi9hXHUwMDAwIn0`),
    ask(`GET ${maps}?limit=-1`),
    ask(`GET ${maps}?limit=x`),
    ask(`GET ${maps}?limit=1.5`),
    ask(`GET ${maps}?limit=100&labelSelector=in=lists`),
  ];
}

function versions(): readonly Step[] {
  const at = '<c.metadata.resourceVersion>';
  const rows = [
    'resourceVersion=0',
    'resourceVersion=0&limit=2',
    `resourceVersion=${at}`,
    `resourceVersion=${at}&limit=2`,
    `resourceVersion=${at}&resourceVersionMatch=Exact`,
    `resourceVersion=${at}&resourceVersionMatch=Exact&limit=1`,
    `resourceVersion=${at}&resourceVersionMatch=NotOlderThan`,
    `resourceVersion=${at}&resourceVersionMatch=NotOlderThan&limit=2`,
    'resourceVersion=0&resourceVersionMatch=Exact',
    'resourceVersion=0&resourceVersionMatch=NotOlderThan',
    'resourceVersionMatch=Exact',
    'resourceVersionMatch=NotOlderThan',
    `resourceVersion=${at}&resourceVersionMatch=Sometimes`,
    'resourceVersionMatch=Exact&continue=x',
    'resourceVersion=x',
    'resourceVersion=-1',
    'resourceVersion=1.0',
    'sendInitialEvents=true',
    'sendInitialEvents=false',
    'timeoutSeconds=x',
    'allowWatchBookmarks=true',
    'unknown=1',
  ];
  return [
    ...rows.map((row) => ask(`GET ${maps}?labelSelector=in=lists&${row}`)),
    ask(`GET ${maps}/a?resourceVersion=0`),
    ask(`GET ${maps}/a?resourceVersion=${at}`),
    ask(`GET ${maps}/a?resourceVersion=x`),
    ask(`GET ${maps}/not-there?resourceVersion=0`),
  ];
}

function selectors(): readonly Step[] {
  const labels = [
    'half=first',
    'half==first',
    'half!=first,in=lists',
    'half in (first,second)',
    'half in (first),in',
    'half notin (first),in',
    '!half,in',
    '!in',
    'in',
    'half in ()',
    'half in (,)',
    'in=lists,half=',
    'half>1',
    'in<2',
    'in=lists,',
    ',in=lists',
    '-x=1',
    'x=-1',
    'x y',
    'x in a',
    'x in (a',
    'a/b/c=d',
    'x==',
    'x!',
    `${'x'.repeat(64)}=a`,
    `x=${'y'.repeat(64)}`,
    'x.y/z=a',
    'UPPER/x=a',
  ];
  const fields = [
    'metadata.name=a',
    'metadata.name==a',
    'metadata.name!=a,metadata.name!=kube-root-ca.crt',
    'metadata.namespace=<ns>,metadata.name=b',
    'metadata.namespace=other',
    'metadata.name=a,metadata.name=b',
    'metadata.uid=x',
    'data.at=1',
    'metadata.name',
    'metadata.name=a=b',
    'metadata.name in (a,b)',
    'metadata.name=',
    ',metadata.name=a',
    'metadata.name=a\\,b',
    'metadata.name=a\\x',
  ];
  return [
    ...labels.map((each) =>
      ask(`GET ${maps}?labelSelector=${encodeURIComponent(each)}`, {
        what: `by labels: ${each.slice(0, 30)}`,
      }),
    ),
    ...fields.map((each) =>
      ask(`GET ${maps}?fieldSelector=${each.includes('<') ? each : encodeURIComponent(each)}`, {
        what: `by fields: ${each}`,
      }),
    ),
    ask('GET /api/v1/configmaps?labelSelector=in=lists', { what: 'over all namespaces' }),
    ask(`GET /api/v1/configmaps?labelSelector=in=lists&fieldSelector=metadata.namespace=<ns>&limit=2`),
  ];
}

function podsByFields(): readonly Step[] {
  const rows = [
    'spec.nodeName=nowhere',
    'spec.nodeName=',
    'spec.restartPolicy=Always',
    'spec.restartPolicy!=Always',
    'spec.schedulerName=nobody',
    'spec.serviceAccountName=default',
    'spec.hostNetwork=false',
    'spec.hostNetwork=true',
    'status.phase=Pending',
    'status.phase!=Pending',
    'status.podIP=10.0.0.1',
    'status.nominatedNodeName=',
    'spec.image=x',
    'metadata.labels=x',
    'spec.nodeName=nowhere,status.phase!=Failed,status.phase!=Succeeded',
  ];
  const rest = [
    '/api/v1/nodes?fieldSelector=spec.unschedulable=true',
    '/api/v1/nodes?fieldSelector=spec.podCIDR=x',
    '/api/v1/namespaces?fieldSelector=status.phase=Terminating',
    '/api/v1/namespaces?fieldSelector=metadata.namespace=x',
    `${core}/secrets?fieldSelector=type=Opaque`,
    `${core}/secrets?fieldSelector=data.x=1`,
    `${core}/services?fieldSelector=spec.type=ClusterIP`,
    `${core}/services?fieldSelector=spec.clusterIP=None`,
    `${core}/services?fieldSelector=spec.ports=1`,
    `${core}/serviceaccounts?fieldSelector=secrets=1`,
    `${core}/events?fieldSelector=involvedObject.name=x,type=Normal,reason=y`,
    `${core}/events?fieldSelector=source=x,reportingComponent=y`,
    `${core}/events?fieldSelector=involvedObject.uid=x,involvedObject.fieldPath=spec`,
    `${core}/events?fieldSelector=message=x`,
    '/apis/certificates.k8s.io/v1/certificatesigningrequests?fieldSelector=spec.signerName=x.y/z',
    '/apis/certificates.k8s.io/v1/certificatesigningrequests?fieldSelector=spec.username=x',
    `/apis/coordination.k8s.io/v1/namespaces/<ns>/leases?fieldSelector=spec.holderIdentity=x`,
    '/api/v1/persistentvolumes?fieldSelector=spec.storageClassName=x',
    `${core}/persistentvolumeclaims?fieldSelector=status.phase=x`,
    '/apis/storage.k8s.io/v1/csinodes?fieldSelector=spec=x',
    '/apis/node.k8s.io/v1/runtimeclasses?fieldSelector=handler=x',
  ];
  return [
    create(`${core}/pods`, boundPod('a')),
    create(
      `${core}/pods`,
      boundPod('b', { restartPolicy: 'Never', hostNetwork: true, nodeName: 'elsewhere' }),
    ),
    ...rows.map((row) => ask(`GET ${core}/pods?fieldSelector=${row}`)),
    ...rest.map((path) => ask(`GET ${path}`)),
  ];
}

export const lists = chapter('lists', [...six, ...pages(), ...versions(), ...selectors(), ...podsByFields()]);
