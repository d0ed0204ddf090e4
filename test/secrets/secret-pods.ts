import { Buffer } from 'node:buffer';
import type { Canaries } from './canaries.ts';

export const busybox = 'localhost/kubeling/busybox:1';

/** A Secret with all keys that the test pods use, and an image pull secret. */
export function secretObjects(
  canaries: Canaries,
  registry: { host: string; login: string },
): readonly object[] {
  const data = (text: string) => Buffer.from(text).toString('base64');
  const login = { username: 'alice', password: registry.login };
  const wrong = { username: 'alice', password: canaries.of('wrong registry password') };
  const pullSecret = (name: string, auth: object) => ({
    apiVersion: 'v1',
    kind: 'Secret',
    type: 'kubernetes.io/dockerconfigjson',
    metadata: { name },
    data: { '.dockerconfigjson': data(JSON.stringify({ auths: { [registry.host]: auth } })) },
  });
  return [
    {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'app' },
      data: {
        variable: data(canaries.of('secret in a variable')),
        file: data(canaries.of('secret in a volume')),
        projected: data(canaries.of('secret in a projected volume')),
      },
    },
    {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'all' },
      data: { ALL: data(canaries.of('envFrom')) },
    },
    pullSecret('login', login),
    pullSecret('wrong', wrong),
  ];
}

const shell = (script: string) => ({ exec: { command: ['sh', '-c', script] } });

/** A pod that receives its secrets in every way and does not print them. */
export function secretPod(canaries: Canaries, name: string, image: string): object {
  const probe = { periodSeconds: 1, failureThreshold: 1_000 };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: {
      terminationGracePeriodSeconds: 5,
      imagePullSecrets: [{ name: 'login' }],
      initContainers: [{ name: 'pulled', image, command: ['sh', '-c', ':'] }],
      containers: [
        {
          name: 'main',
          image: busybox,
          command: [
            'sh',
            '-c',
            'trap exit TERM; while true; do sleep 0.2; done',
            canaries.of('command of a container'),
          ],
          env: [
            { name: 'PLAIN', value: canaries.of('plain variable') },
            { name: 'FROM', valueFrom: { secretKeyRef: { name: 'app', key: 'variable' } } },
          ],
          envFrom: [{ secretRef: { name: 'all' } }],
          livenessProbe: { ...probe, ...shell(`: ${canaries.of('argument of a probe')}`) },
          readinessProbe: { ...probe, ...shell(': ok') },
          lifecycle: {
            postStart: shell(`: ${canaries.of('argument of a hook')}`),
            preStop: shell(`: ${canaries.of('argument of a preStop hook')}; exit 3`),
          },
          volumeMounts: ['secret', 'projected'].map((volume) => ({ name: volume, mountPath: `/${volume}` })),
        },
      ],
      volumes: [
        { name: 'secret', secret: { secretName: 'app', items: [{ key: 'file', path: 'file' }] } },
        {
          name: 'projected',
          projected: {
            sources: [
              { secret: { name: 'app', items: [{ key: 'projected', path: 'key' }] } },
              { serviceAccountToken: { path: 'token', expirationSeconds: 600 } },
            ],
          },
        },
      ],
    },
  };
}

/**
 * Pods that use secrets and fail by: a hook, a probe, a missing program, a variable, an image pull.
 */
export function failingPods(canaries: Canaries, image: string): readonly object[] {
  const pod = (name: string, container: object, spec: object = {}) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: {
      terminationGracePeriodSeconds: 0,
      ...spec,
      containers: [{ name: 'main', image: busybox, command: ['sleep', '1000'], ...container }],
    },
  });
  const gone = (what: string) => ({ exec: { command: [`/no-such-program`, canaries.of(what)] } });
  return [
    pod('hook', { lifecycle: { postStart: shell(`: ${canaries.of('failing hook')}; exit 7`) } }),
    pod('hook-gone', { lifecycle: { postStart: gone('hook without a program') } }),
    pod('probe', {
      livenessProbe: { ...shell(`: ${canaries.of('failing probe')}; exit 7`), periodSeconds: 1 },
    }),
    pod('probe-gone', { readinessProbe: { ...gone('probe without a program'), periodSeconds: 1 } }),
    pod('program', { command: ['/no-such-program', canaries.of('container without a program')] }),
    pod('variable', {
      env: [
        { name: 'A', value: canaries.of('variable beside a missing one') },
        { name: 'B', valueFrom: { secretKeyRef: { name: 'none', key: 'none' } } },
      ],
    }),
    pod('pull', { image: `${image}-none` }, { imagePullSecrets: [{ name: 'wrong' }] }),
  ];
}

/** Invalid objects that contain secrets; the error responses must not repeat the secrets. */
export function wrongObjects(canaries: Canaries): readonly object[] {
  const secret = (name: string, rest: object) => ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name },
    ...rest,
  });
  const wrong = (what: string) => canaries.of(`refused secret: ${what}`);
  return [
    secret('no-base64', { data: { key: `${wrong('no Base64')}!!` } }),
    secret('a-number', { data: { key: { inner: wrong('an object') } } }),
    secret('a-list', { stringData: { key: [wrong('a list')] } }),
    secret('no-json', {
      type: 'kubernetes.io/dockerconfigjson',
      data: { '.dockerconfigjson': Buffer.from(`{${wrong('no JSON')}`).toString('base64') },
    }),
    secret('no-cfg', {
      type: 'kubernetes.io/dockercfg',
      stringData: { '.dockercfg': wrong('no dockercfg') },
    }),
    secret('no-user', { type: 'kubernetes.io/basic-auth', stringData: { pass: wrong('no user') } }),
    secret('as-text', { data: wrong('a text') }),
    secret('key', { stringData: { 'wrong key': wrong('wrong key') } }),
  ];
}
