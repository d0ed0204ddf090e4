import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  ContainerStatusResponse,
  ListContainerStatsResponse,
  ListContainersResponse,
} from '../../src/cri/index.ts';
import { decodeJson, KindTable } from '../../src/kinds/index.ts';
import { readMediaType } from '../../src/local-api/http/media-types.ts';
import type { Pod } from '../../src/pods/index.ts';
import { validateStoredPod } from '../../src/pods/validation/index.ts';
import { NodeGetInfoResponse } from '../../src/volumes/csi/gen/node.ts';
import { LoopMonitor } from '../chaos/loop-monitor.ts';
import { defaultRules, podManifest, readManifestText } from '../fakes/manifests.ts';

/** The documented limit is 100 ms; the higher limit allows for a slow or busy machine. */
const mostHoldMs = 1_000;
const mostHeldBytes = 256 * 2 ** 20;

const table = new KindTable();
const times = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => make(index));

function repeated(hex: string, bytes: number): Buffer {
  return Buffer.alloc(bytes, Buffer.from(hex, 'hex'));
}

function entries(number: number, count: number): Buffer {
  const part = (tag: number, bytes: Buffer) => Buffer.concat([Buffer.from([tag, bytes.length]), bytes]);
  const all = times(count, (index) =>
    part(
      (number << 3) | 2,
      Buffer.concat([part(0x0a, Buffer.from(`k${index}`)), part(0x12, Buffer.from('v'))]),
    ),
  );
  return Buffer.concat(all);
}

const container = (index: number, parts: object = {}) => ({ name: `c${index}`, image: 'i', ...parts });

/** Returns a function that decodes and validates a pod as a watch event delivers it. */
function fromWatch(spec: object): () => void {
  const metadata = { name: 'p', namespace: 'default', uid: 'u' };
  const text = JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata, spec });
  return () => {
    const { value } = decodeJson<Pod>(table, 'Pod', JSON.parse(text));
    validateStoredPod(value as never, defaultRules, table);
  };
}

const manifest = (text: string) => () => readManifestText(text);
const answer = (type: { decode(bytes: Uint8Array): unknown }, bytes: Buffer) => () => type.decode(bytes);
const most = 16 << 20;

const inputs: readonly (readonly [string, () => unknown])[] = [
  ['manifest: 1,000 pods', manifest(times(1_000, (index) => podManifest(`p${index}`)).join('\n---\n'))],
  [
    'manifest: a pod of 1,000 containers',
    manifest(podManifest('p', 'i', times(1_000, (index) => `  - {name: c${index}, image: i}`).join('\n'))),
  ],
  [
    'manifest: a pod of 10,000 variables',
    manifest(
      podManifest('p', 'i', `    env: [${times(10_000, (index) => `{name: n${index}, value: v}`).join()}]`),
    ),
  ],
  [
    'manifest: a megabyte of annotations',
    manifest(`metadata: {annotations: {a: "${'x'.repeat(1_000_000)}"}}`),
  ],
  ['manifest: a list of the maximum length', manifest(`[${'a,'.repeat(49_000)}]`)],
  ['manifest: mistakes', manifest(`[${'}'.repeat(90_000)}`)],
  ['manifest: nested brackets', manifest('['.repeat(1_000_000))],
  ['manifest: nested aliases', manifest(`a: &a [x]\n${times(50, (i) => `b${i}: &a [*a,*a,*a]`).join('\n')}`)],
  ['manifest: ten megabytes of blanks', manifest(' '.repeat(10_000_000))],
  ['manifest: ten megabytes of lines', manifest('{\n'.repeat(5_000_000))],
  ['watch: a pod of 1,000 containers', fromWatch({ containers: times(1_000, (index) => container(index)) })],
  [
    'watch: a pod of 10,000 variables',
    fromWatch({
      containers: [container(0, { env: times(10_000, (i) => ({ name: `n${i}`, value: '$(n0)' })) })],
    }),
  ],
  [
    'watch: a pod of 8,000 volumes',
    fromWatch({
      volumes: times(8_000, (index) => ({ name: `v${index}`, emptyDir: {} })),
      containers: [
        container(0, { volumeMounts: times(8_000, (i) => ({ name: `v${i}`, mountPath: `/m/${i}` })) }),
      ],
    }),
  ],
  [
    'watch: claims of containers',
    fromWatch({
      resourceClaims: times(3_000, (index) => ({ name: `c${index}`, resourceClaimName: 'x' })),
      containers: [container(0, { resources: { claims: times(3_000, (index) => ({ name: `d${index}` })) } })],
    }),
  ],
  ['runtime: millions of containers', answer(ListContainersResponse, repeated('0a00', most))],
  ['runtime: millions of stats', answer(ListContainerStatsResponse, repeated('0a00', most))],
  ['runtime: fields of one byte', answer(ListContainersResponse, repeated('7800', most))],
  ['runtime: a large map', answer(ContainerStatusResponse, entries(2, 100_000))],
  ['driver: a large map', answer(NodeGetInfoResponse, entries(3, 100_000))],
  ['driver: fields of one byte', answer(NodeGetInfoResponse, repeated('7800', most))],
  ['a media type of many parameters', () => readMediaType(`a/b${';c=d'.repeat(200_000)}`)],
];

for (const [what, work] of inputs) {
  test(`${what} neither blocks the event loop nor uses much memory`, async (t) => {
    using monitor = new LoopMonitor();
    await turn();
    monitor.takeLongestMs();
    const before = process.memoryUsage().heapUsed;
    try {
      await work();
    } catch (error) {
      t.diagnostic(`refused: ${String(error).slice(0, 200)}`);
    }
    const held = process.memoryUsage().heapUsed - before;
    await turn();
    const ms = monitor.takeLongestMs();
    t.diagnostic(`${ms.toFixed(0)} ms in one turn, ${Math.round(held / 2 ** 20)} MiB`);
    assert.ok(ms < mostHoldMs, `${ms} ms in one turn`);
    assert.ok(held < mostHeldBytes, `${held} bytes`);
  });
}

/** Waits until the monitor has measured the previous turn of the event loop. */
function turn(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 3));
}
