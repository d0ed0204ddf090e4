import type { Answered, Way } from './served-api.ts';

export type Caller = (way: Way) => Promise<Answered>;

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];

/**
 * Returns one API request of every kind, each with a description, in the namespace `default` and in
 * all namespaces.
 */
export async function everyWay(admin: Caller): Promise<readonly Way[]> {
  const ways: Way[] = [];
  for (const root of await rootsOf(admin)) {
    const { resources } = JSON.parse((await admin({ method: 'GET', path: root })).text) as {
      readonly resources: readonly { readonly name: string; readonly namespaced: boolean }[];
    };
    for (const { name, namespaced } of resources) {
      const [plural = '', sub] = name.split('/');
      const at = `${root}${namespaced ? '/namespaces/default' : ''}/${plural}`;
      const one = `${at}/thing${sub === undefined ? '' : `/${sub}`}`;
      ways.push(...methods.map((method) => ({ method, path: one })));
      if (sub !== undefined) continue;
      ways.push(...methods.map((method) => ({ method, path: at })));
      ways.push({ method: 'GET', path: `${at}?watch=true` }, { method: 'GET', path: `${root}/${plural}` });
    }
  }
  return ways;
}

async function rootsOf(admin: Caller): Promise<readonly string[]> {
  const { groups } = JSON.parse((await admin({ method: 'GET', path: '/apis' })).text) as {
    readonly groups: readonly { readonly versions: readonly { readonly groupVersion: string }[] }[];
  };
  return [
    '/api/v1',
    ...groups.flatMap(({ versions }) => versions.map((each) => `/apis/${each.groupVersion}`)),
  ];
}

/**
 * Every streaming request into a pod `web` of `default`, or through the node `n1`, with and without
 * upgrade headers.
 */
export function everyStream(): readonly Way[] {
  const pod = '/api/v1/namespaces/default/pods/web';
  const paths = [
    `${pod}/exec?command=id&stdout=true`,
    `${pod}/attach?stdout=true`,
    `${pod}/portforward?ports=80`,
    `${pod}/proxy/`,
    `${pod}/log`,
    '/api/v1/namespaces/default/services/web/proxy/x',
    '/api/v1/nodes/n1/proxy/pods',
    '/api/v1/nodes/n1/proxy/exec/default/web/main?command=id',
  ];
  return paths.flatMap((path) => [
    { method: 'GET', path },
    { method: 'POST', path },
    { method: 'GET', path, upgrade: 'websocket' as const },
    { method: 'GET', path, upgrade: 'SPDY/3.1' as const },
    { method: 'POST', path, upgrade: 'SPDY/3.1' as const },
  ]);
}
