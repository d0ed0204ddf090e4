import assert from 'node:assert/strict';
import { describe, it, test } from 'node:test';
import fc from 'fast-check';
import { defaultRules, readManifestText } from '../../../test/fakes/manifests.ts';
import { readRecording } from '../../../test/testdata/pods/recorded.ts';
import { decodeJson, KindTable, type Pod as WrittenPod } from '../../kinds/index.ts';
import { withPodDefaults } from '../defaults/index.ts';
import { validatePod } from './index.ts';

/** Validates a pod spec (YAML flow or JSON) and returns the errors; a valid spec has none. */
async function toldAbout(spec: string, metadata = 'name: a', rules = defaultRules): Promise<string[]> {
  const reading = await readManifestText(
    `{apiVersion: v1, kind: Pod, metadata: {${metadata}}, spec: {${spec}}}`,
    rules,
  );
  return reading.problems.map(({ field, message }) => `${field}: ${message}`);
}

const box = 'name: m, image: x';
/** A pod spec of one container with additional fields. */
const one = (more: string) => `containers: [{${box}, ${more}}]`;
const withVolume = (volume: string) => `containers: [{${box}}], volumes: [{name: v, ${volume}}]`;
const whole = (more: string) => `containers: [{${box}}], ${more}`;

describe('a valid pod', () => {
  const good: Record<string, string> = {
    'with one container': one(''),
    'with ports on the node': one('ports: [{containerPort: 80, hostPort: 8080, name: http}]'),
    'with every kind of handler': one(
      'livenessProbe: {exec: {command: [a]}}, readinessProbe: {grpc: {port: 1}, successThreshold: 3}, startupProbe: {tcpSocket: {port: http}}, lifecycle: {preStop: {sleep: {seconds: 0}}, postStart: {httpGet: {port: 80}}}',
    ),
    'with a sidecar that is probed': `${one('')}, initContainers: [{name: i, image: x, restartPolicy: Always, livenessProbe: {exec: {command: [a]}}}]`,
    'with variables of itself': one(
      "env: [{name: 'A.b-c d', valueFrom: {fieldRef: {fieldPath: \"metadata.labels['a.io/b']\"}}}, {name: B, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 1m}}}, {name: C, valueFrom: {fieldRef: {fieldPath: status.podIP}}}]",
    ),
    'with mounts': `containers: [{${box}, volumeMounts: [{name: v, mountPath: /a, subPath: b/c}, {name: v, mountPath: /b, readOnly: true, recursiveReadOnly: Enabled}]}], volumes: [{name: v}]`,
    'with volumes of the node': whole(
      "volumes: [{name: a, hostPath: {path: /x, type: Socket}}, {name: b, nfs: {server: s, path: /p}}, {name: c, iscsi: {targetPortal: 1.2.3.4, iqn: 'iqn.2015-02.example.com:test', lun: 1}}, {name: d, fc: {wwids: [x]}}, {name: e, flexVolume: {driver: x/y}}, {name: f, image: {reference: x}}, {name: g, downwardAPI: {items: [{path: l, fieldRef: {fieldPath: metadata.labels}}]}}, {name: h, projected: {sources: [{downwardAPI: {items: [{path: l, fieldRef: {fieldPath: metadata.name}}]}}]}}]",
    ),
    'with resources': one(
      "resources: {limits: {cpu: 1, 'x.io/gpu': 2, hugepages-2Mi: 4Mi}, requests: {cpu: 500m}}",
    ),
    'with a security context': whole(
      'securityContext: {runAsUser: 0, fsGroup: 1, sysctls: [{name: net.ipv4.ip_forward, value: "1"}, {name: kernel/shm_rmid_forced, value: "1"}], seccompProfile: {type: Localhost, localhostProfile: a/b.json}, supplementalGroupsPolicy: Strict}',
    ),
    'with names and addresses': whole(
      "hostname: h, subdomain: s, hostAliases: [{ip: '::1', hostnames: [a.b]}], dnsPolicy: None, dnsConfig: {nameservers: [1.1.1.1], searches: [_a.b., .], options: [{name: ndots, value: '2'}]}",
    ),
    'with tolerations': whole(
      'tolerations: [{operator: Exists}, {key: a, value: b, effect: NoSchedule}, {key: a, operator: Exists, effect: NoExecute, tolerationSeconds: 3}]',
    ),
    'with affinity': whole(
      'affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Gt, values: ["1"]}], matchFields: [{key: metadata.name, operator: In, values: [node-b]}]}]}}, podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: a, labelSelector: {matchLabels: {a: b}}}}]}}',
    ),
    'with restart rules': one(
      'restartPolicy: Never, restartPolicyRules: [{action: Restart, exitCodes: {operator: In, values: [42]}}]',
    ),
    'with a stop signal': `os: {name: linux}, ${one('lifecycle: {stopSignal: SIGRTMIN+3}')}`,
    'with a variable from a file': `containers: [{${box}, env: [{name: A, valueFrom: {fileKeyRef: {volumeName: v, path: a/b, key: K}}}]}], volumes: [{name: v}]`,
    'with a resize policy': one('resizePolicy: [{resourceName: cpu, restartPolicy: NotRequired}]'),
  };
  for (const [what, spec] of Object.entries(good))
    it(what, async () => assert.deepEqual(await toldAbout(spec), []));
});

/**
 * Invalid pods whose messages are not compared: the API server rejects them while decoding, or
 * reports them with a message of Go.
 */
const notCompared: ReadonlySet<string> = new Set([
  'privileged without escalation',
  'with a name of a seccomp profile that needs none',
  'with a claim of two names',
  'with a claim of no source',
]);

describe('rejects a pod with the messages of the API server', () => {
  const table = new KindTable();
  const rules = { ...defaultRules, apiReferences: 'allowed' } as const;
  const recorded = readRecording('refused').filter(
    ({ what, answer }) => answer.code === 422 && !notCompared.has(what),
  );
  for (const { what, pod, answer } of recorded)
    it(what, () => {
      const { value } = decodeJson<WrittenPod>(table, 'Pod', pod);
      const placed = { ...value, metadata: { ...value.metadata, namespace: 'default' } };
      const { spec, ...rest } = withPodDefaults(placed, rules.enabled);
      const named = { ...rest, spec: { serviceAccountName: 'default', ...spec } };
      const reported = validatePod(named, rules, table).map((problem) => ({
        reason: problem.reason,
        message: problem.message,
        field: problem.named.toString(),
      }));
      assert.deepEqual(reported, answer.causes);
    });
});

describe('rejects an invalid static pod', () => {
  const bad: readonly (readonly [string, string, RegExp])[] = [
    [
      'for the exact amount that is invalid',
      one('resources: {limits: {cpu: 1}, requests: {cpu: 2}}'),
      /^spec\.containers\[0\]\.resources\.requests\[cpu\]: Invalid value: "2": must be less than or equal/,
    ],
    [
      'for the exact mount that is invalid',
      `containers: [{${box}, volumeMounts: [{name: v, mountPath: /a, subPath: ../b}]}], volumes: [{name: v}]`,
      /^spec\.containers\[0\]\.volumeMounts\[0\]\.subPath: Invalid value: "\.\.\/b": must not contain '\.\.'/,
    ],
    [
      'with scheduling gates, because it is bound to its node',
      whole('schedulingGates: [{name: a}]'),
      /^spec\.nodeName: Forbidden: cannot be set until all schedulingGates/,
    ],
    [
      'with a stop signal without an operating system',
      one('lifecycle: {stopSignal: SIGTERM}'),
      /stopSignal: Forbidden: may not be set for containers with empty/,
    ],
    [
      'with an invalid group name',
      whole('schedulingGroup: {podGroupName: A_b}'),
      /podGroupName: Invalid value: "A_b": a lowercase RFC 1123 subdomain/,
    ],
  ];
  for (const [what, spec, expected] of bad)
    it(what, async () => {
      const reported = await toldAbout(spec);
      assert.ok(
        reported.some((text) => expected.test(text)),
        `${expected} is not among\n${reported.join('\n')}`,
      );
    });
});

describe('rejects invalid metadata of a static pod', () => {
  const bad: readonly (readonly [string, RegExp])[] = [
    [`name: ${'a'.repeat(250)}`, /^metadata\.name: Invalid value: .*: must be no more than 253 characters/],
    ['name: a, namespace: A', /^metadata\.namespace: Invalid value: "A": a lowercase RFC 1123 label/],
    ['name: a, uid: ../../etc', /^metadata\.uid: Invalid value: .*: must be letters/],
    ['name: a, uid: ..', /^metadata\.uid: Invalid value: .*: must be letters/],
    ['name: a, labels: {a: "b c"}', /^metadata\.labels\[a\]: Invalid value: "b c": a valid label/],
    [
      `name: a, annotations: {a: ${'b'.repeat(262_144)}}`,
      /^metadata\.annotations: Too long: may not be more than 262144 bytes/,
    ],
  ];
  for (const [metadata, expected] of bad)
    it(metadata.slice(0, 60), async () => {
      const reported = await toldAbout(one(''), metadata);
      assert.ok(
        reported.some((text) => expected.test(text)),
        `${expected} is not among\n${reported.join('\n')}`.slice(0, 1_000),
      );
    });
});

describe('rejects references of a static pod to API objects', () => {
  const bad: readonly (readonly [string, string])[] = [
    [whole('serviceAccountName: x'), 'serviceaccounts'],
    [whole('imagePullSecrets: [{name: x}]'), 'secrets'],
    [one('env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: k}}}]'), 'secrets'],
    [one('env: [{name: A, valueFrom: {configMapKeyRef: {name: s, key: k}}}]'), 'configmaps'],
    [one('envFrom: [{configMapRef: {name: s}}]'), 'configmaps'],
    [one('envFrom: [{secretRef: {name: s}}]'), 'secrets'],
    [withVolume('secret: {secretName: s}'), 'secrets (via secret volumes)'],
    [withVolume('configMap: {name: s}'), 'configmaps (via configmap volumes)'],
    [withVolume('persistentVolumeClaim: {claimName: s}'), 'persistentvolumeclaims'],
    [
      withVolume(
        'ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}',
      ),
      'persistentvolumeclaims (via ephemeral volumes)',
    ],
    [withVolume('csi: {driver: a.b}'), 'csidrivers (via CSI volumes)'],
    [withVolume('glusterfs: {endpoints: a, path: b}'), 'endpoints (via glusterFS volumes)'],
    [withVolume('azureFile: {secretName: a, shareName: b}'), 'secrets (via azureFile volumes)'],
    [withVolume('projected: {sources: [{secret: {name: s}}]}'), 'secrets (via projected volumes)'],
    [withVolume('projected: {sources: [{clusterTrustBundle: {name: s, path: p}}]}'), 'clustertrustbundles'],
    [whole('resourceClaims: [{name: c, resourceClaimName: d}]'), 'resourceclaims'],
  ];
  for (const [spec, resource] of bad)
    it(resource, async () => {
      const reported = await toldAbout(spec);
      assert.ok(
        reported.some((text) => text.endsWith(`: static pods may not reference ${resource}`)),
        reported.join('\n'),
      );
      assert.deepEqual(await toldAbout(spec, 'name: a', { ...defaultRules, apiReferences: 'allowed' }), []);
    });

  it('without the feature gate PreventStaticPodAPIReferences, rejects only references to API objects that a static pod can never use', async () => {
    const rules = { ...defaultRules, enabled: (gate: string) => gate !== 'PreventStaticPodAPIReferences' };
    assert.deepEqual(await toldAbout(withVolume('secret: {secretName: s}'), 'name: a', rules), []);
    assert.equal(
      (await toldAbout(whole('resourceClaims: [{name: c, resourceClaimName: d}]'), 'name: a', rules)).length,
      1,
    );
  });
});

test('reports all validation errors together, in the order of the fields in the manifest', async () => {
  const { problems } = await readManifestText(`apiVersion: v1
kind: Pod
metadata:
  name: A
spec:
  restartPolicy: X
  containers:
  - name: a
    image: ''
    ports: [{containerPort: 0}]
`);
  assert.deepEqual(
    problems.map(({ line, field }) => `${line} ${field}`),
    [
      '4 metadata.name',
      '6 spec.restartPolicy',
      '9 spec.containers[0].image',
      '10 spec.containers[0].ports[0].containerPort',
    ],
  );
});

test('never throws for any generated pod', async () => {
  const word = fc.constantFrom(
    'containers',
    'name',
    'image',
    'env',
    'volumes',
    'resources',
    'limits',
    'cpu',
    'items',
    'x',
  );
  const tree = fc.letrec((again) => ({
    node: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc.constantFrom<unknown>('a', '', 'Always', 1, -1, true, null, '5Mi'),
      fc.array(again('node'), { maxLength: 3 }),
      fc.dictionary(word, again('node'), { maxKeys: 4 }),
    ),
  }));
  await fc.assert(
    fc.asyncProperty(tree.node, tree.node, async (spec, metadata) => {
      const text = JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata, spec });
      const { pods, problems, complete: sound } = await readManifestText(text);
      assert.equal(sound, pods.length === 1);
      assert.ok(sound || problems.some(({ severity }) => severity === 'error'));
    }),
  );
});

test('never throws for a manifest of random bytes', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.oneof(
        fc.string({ unit: 'binary' }),
        fc.string({ unit: fc.constantFrom(...'-:{}[],&*!|>%@"\' \n\tab1#') }),
      ),
      async (text) => {
        const { pods, problems } = await readManifestText(text);
        assert.equal(pods.length, 0);
        assert.ok(problems.length > 0);
      },
    ),
  );
});
