import assert from 'node:assert/strict';
import { describe, it, test } from 'node:test';
import fc from 'fast-check';
import { defaultRules, readManifestText } from '../../../test/fakes/manifests.ts';

/** What is told about a pod of this spec (as YAML flow or JSON); good specs are told nothing about. */
async function toldAbout(spec: string, metadata = 'name: a', rules = defaultRules): Promise<string[]> {
  const reading = await readManifestText(
    `{apiVersion: v1, kind: Pod, metadata: {${metadata}}, spec: {${spec}}}`,
    rules,
  );
  return reading.problems.map(({ field, message }) => `${field}: ${message}`);
}

const box = 'name: m, image: x';
/** A spec of one container with these fields more. */
const one = (more: string) => `containers: [{${box}, ${more}}]`;
const withVolume = (volume: string) => `containers: [{${box}}], volumes: [{name: v, ${volume}}]`;
const whole = (more: string) => `containers: [{${box}}], ${more}`;

describe('a pod is fine', () => {
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

describe('a pod is refused', () => {
  const bad: readonly (readonly [string, string, RegExp])[] = [
    ['without containers', 'containers: []', /^spec\.containers: must be set/],
    [
      'with a container without name',
      'containers: [{image: x}]',
      /^spec\.containers\[0\]\.name: must be set/,
    ],
    [
      'with a bad name of a container',
      'containers: [{name: A_b, image: x}]',
      /^spec\.containers\[0\]\.name: must consist/,
    ],
    ['without an image', 'containers: [{name: a}]', /^spec\.containers\[0\]\.image: must be set/],
    [
      'with one name twice',
      `containers: [{${box}}, {${box}}]`,
      /^spec\.containers\[1\]\.name: must not repeat/,
    ],
    [
      'with one name for init and regular',
      `${one('')}, initContainers: [{${box}}]`,
      /^spec\.initContainers\[0\]\.name: must not repeat/,
    ],
    [
      'with a pull policy nobody knows',
      one('imagePullPolicy: Sometimes'),
      /imagePullPolicy: must be one of Always/,
    ],
    [
      'with a port too high',
      one('ports: [{containerPort: 65536}]'),
      /containerPort: must be between 1 and 65535/,
    ],
    ['with no port', one('ports: [{name: a}]'), /containerPort: must be set/],
    [
      'with a bad name of a port',
      one('ports: [{containerPort: 1, name: Web}]'),
      /ports\[0\]\.name: must be at most 15/,
    ],
    [
      'with a protocol nobody speaks',
      one('ports: [{containerPort: 1, protocol: IPX}]'),
      /protocol: must be one of TCP, UDP, SCTP/,
    ],
    [
      'with one host port twice',
      `containers: [{${box}, ports: [{containerPort: 1, hostPort: 9}]}, {name: b, image: x, ports: [{containerPort: 2, hostPort: 9}]}]`,
      /^spec\.containers\[1\]\.ports\[0\]\.hostPort: must not repeat/,
    ],
    [
      'with another host port on the network of the node',
      `hostNetwork: true, ${one('ports: [{containerPort: 1, hostPort: 2}]')}`,
      /hostPort: must be the containerPort 1/,
    ],
    ['with a probe of no kind', one('livenessProbe: {}'), /livenessProbe: must be set to a way to act/],
    [
      'with a probe of two kinds',
      one('livenessProbe: {exec: {command: [a]}, tcpSocket: {port: 1}}'),
      /livenessProbe\.tcpSocket: must not be set beside exec/,
    ],
    ['with a probe at no port', one('livenessProbe: {httpGet: {port: 0}}'), /httpGet\.port: must be between/],
    [
      'with a probe of a bad scheme',
      one('livenessProbe: {httpGet: {port: 1, scheme: http}}'),
      /scheme: must be one of HTTP, HTTPS/,
    ],
    [
      'with a negative period',
      one('readinessProbe: {tcpSocket: {port: 1}, periodSeconds: -1}'),
      /periodSeconds: must be 0 or more/,
    ],
    [
      'with two successes for liveness',
      one('livenessProbe: {tcpSocket: {port: 1}, successThreshold: 2}'),
      /successThreshold: must be 1/,
    ],
    [
      'with grace on readiness',
      one('readinessProbe: {tcpSocket: {port: 1}, terminationGracePeriodSeconds: 3}'),
      /must not be set on a readiness probe/,
    ],
    [
      'with a hook of no command',
      one('lifecycle: {preStop: {exec: {}}}'),
      /preStop\.exec\.command: must be set/,
    ],
    [
      'with a sleep beyond its grace',
      `terminationGracePeriodSeconds: 5, ${one('lifecycle: {preStop: {sleep: {seconds: 6}}}')}`,
      /sleep\.seconds: must be between 0 and 5/,
    ],
    [
      'with a stop signal for no system',
      one('lifecycle: {stopSignal: SIGTERM}'),
      /stopSignal: must not be set unless spec\.os\.name/,
    ],
    [
      'with a probed init container',
      `${one('')}, initContainers: [{name: i, image: x, livenessProbe: {exec: {command: [a]}}}]`,
      /initContainers\[0\]\.livenessProbe: must not be set on an init container/,
    ],
    [
      'with a bad name of a variable',
      one('env: [{name: "A=B"}]'),
      /env\[0\]\.name: must consist of printable/,
    ],
    [
      'with a variable of two values',
      one('env: [{name: A, value: b, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]'),
      /valueFrom: must not be set beside a value/,
    ],
    ['with a variable from nowhere', one('env: [{name: A, valueFrom: {}}]'), /valueFrom: must have one of/],
    [
      'with a variable of an unknown field',
      one('env: [{name: A, valueFrom: {fieldRef: {fieldPath: spec.foo}}}]'),
      /fieldPath: must be one of metadata\.name/,
    ],
    [
      'with a variable of a bad divisor',
      one('env: [{name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: "7"}}}]'),
      /divisor: must be one of 1m, 1/,
    ],
    [
      'with a mount of no volume',
      one('volumeMounts: [{name: v, mountPath: /a}]'),
      /volumeMounts\[0\]\.name: must be the name of a volume/,
    ],
    [
      'with two mounts at one path',
      `containers: [{${box}, volumeMounts: [{name: v, mountPath: /a}, {name: v, mountPath: /a}]}], volumes: [{name: v}]`,
      /volumeMounts\[1\]\.mountPath: must not repeat/,
    ],
    [
      'with a sub-path that climbs',
      `containers: [{${box}, volumeMounts: [{name: v, mountPath: /a, subPath: ../b}]}], volumes: [{name: v}]`,
      /subPath: must not contain \.\./,
    ],
    [
      'with shared mounts unprivileged',
      `containers: [{${box}, volumeMounts: [{name: v, mountPath: /a, mountPropagation: Bidirectional}]}], volumes: [{name: v}]`,
      /must not be Bidirectional unless/,
    ],
    [
      'with recursive read-only not read-only',
      `containers: [{${box}, volumeMounts: [{name: v, mountPath: /a, recursiveReadOnly: Enabled}]}], volumes: [{name: v}]`,
      /recursiveReadOnly: must not be set unless readOnly/,
    ],
    [
      'with a device that is none',
      `containers: [{${box}, volumeDevices: [{name: v, devicePath: /dev/a}]}], volumes: [{name: v}]`,
      /volumeDevices\[0\]\.name: must be a persistentVolumeClaim/,
    ],
    [
      'with a request beyond its limit',
      one('resources: {limits: {cpu: 1}, requests: {cpu: 2}}'),
      /requests\[cpu\]: must not be more than the limit of 1/,
    ],
    [
      'with a negative amount',
      one('resources: {requests: {cpu: "-1"}}'),
      /requests\[cpu\]: must not be negative/,
    ],
    [
      'with half a device',
      one('resources: {limits: {x.io/gpu: 500m}}'),
      /limits\[x\.io\/gpu\]: must be a whole number/,
    ],
    [
      'with a device asked for but not limited',
      one('resources: {requests: {x.io/gpu: 1}}'),
      /limits\[x\.io\/gpu\]: must be set/,
    ],
    [
      'with a resource nobody knows',
      one('resources: {limits: {gpu: 1}}'),
      /limits\[gpu\]: must be about a resource/,
    ],
    [
      'with huge pages alone',
      one('resources: {limits: {hugepages-2Mi: 4Mi}}'),
      /must have cpu or memory beside huge pages/,
    ],
    [
      'with half a huge page',
      one('resources: {limits: {cpu: 1, hugepages-2Mi: 3Mi}}'),
      /must be a whole number of pages/,
    ],
    [
      'with a claim it does not have',
      one('resources: {claims: [{name: c}]}'),
      /claims\[0\]\.name: must be the name of one of/,
    ],
    [
      'with less for all than for one',
      `resources: {limits: {cpu: 1}}, ${one('resources: {limits: {cpu: 2}}')}`,
      /must not be more than the 1 of the whole pod/,
    ],
    [
      'with a resize policy for disks',
      one('resizePolicy: [{resourceName: disk, restartPolicy: NotRequired}]'),
      /resourceName: must be one of cpu, memory/,
    ],
    [
      'with a resize that restarts what never restarts',
      `restartPolicy: Never, ${one('resizePolicy: [{resourceName: cpu, restartPolicy: RestartContainer}]')}`,
      /must be NotRequired while/,
    ],
    [
      'with restart rules without a policy',
      one('restartPolicyRules: [{action: Restart, exitCodes: {operator: In, values: [1]}}]'),
      /restartPolicy: must be set beside restart rules/,
    ],
    [
      'with a restart rule of no codes',
      one('restartPolicy: Never, restartPolicyRules: [{action: Restart}]'),
      /exitCodes: must be set/,
    ],
    ['with a bad restart policy', whole('restartPolicy: Sometimes'), /^spec\.restartPolicy: must be one of/],
    ['with a user below zero', one('securityContext: {runAsUser: -1}'), /runAsUser: must be between 0/],
    [
      'privileged without escalation',
      one('securityContext: {privileged: true, allowPrivilegeEscalation: false}'),
      /allowPrivilegeEscalation: must not be false while privileged/,
    ],
    [
      'with a seccomp profile of no name',
      one('securityContext: {seccompProfile: {type: Localhost}}'),
      /localhostProfile: must be set/,
    ],
    [
      'with an AppArmor profile nobody knows',
      one('securityContext: {appArmorProfile: {type: X}}'),
      /appArmorProfile\.type: must be one of/,
    ],
    [
      'with an unmasked /proc of the host',
      one('securityContext: {procMount: Unmasked}'),
      /procMount: must not be Unmasked unless/,
    ],
    [
      'with a bad sysctl',
      whole('securityContext: {sysctls: [{name: "a b", value: x}]}'),
      /sysctls\[0\]\.name: must be the name of a kernel parameter/,
    ],
    [
      'with a sysctl of the network of the node',
      whole('hostNetwork: true, securityContext: {sysctls: [{name: net.a, value: x}]}'),
      /must not be of the network of the node/,
    ],
    [
      'with user and process namespaces mixed',
      whole('hostUsers: false, hostPID: true'),
      /hostPID: must not be set while hostUsers is false/,
    ],
    [
      'with processes shared twice',
      whole('hostPID: true, shareProcessNamespace: true'),
      /shareProcessNamespace: must not be true/,
    ],
    [
      'with a volume of two kinds',
      withVolume('emptyDir: {}, hostPath: {path: /x}'),
      /volumes\[0\]\.hostPath: must not be set beside emptyDir/,
    ],
    [
      'with a volume name twice',
      whole('volumes: [{name: v}, {name: v}]'),
      /volumes\[1\]\.name: must not repeat/,
    ],
    [
      'with a host path that climbs',
      withVolume('hostPath: {path: /a/../b}'),
      /hostPath\.path: must not contain/,
    ],
    [
      'with a host path of no kind',
      withVolume('hostPath: {path: /a, type: Door}'),
      /hostPath\.type: must be one of/,
    ],
    [
      'with a mode beyond modes',
      withVolume('downwardAPI: {defaultMode: 01000}'),
      /defaultMode: must be between 0 and 511/,
    ],
    ['with a negative size', withVolume('emptyDir: {sizeLimit: "-1"}'), /sizeLimit: must not be negative/],
    [
      'with an NFS path that is relative',
      withVolume('nfs: {server: s, path: p}'),
      /nfs\.path: must be an absolute path/,
    ],
    [
      'with a bad iSCSI name',
      withVolume('iscsi: {targetPortal: a, iqn: nonsense, lun: 0}'),
      /iscsi\.iqn: must be an iSCSI name/,
    ],
    [
      'with a file of nothing',
      withVolume('downwardAPI: {items: [{path: a}]}'),
      /items\[0\]: must have one of fieldRef/,
    ],
    [
      'with a path kept for bookkeeping',
      withVolume('downwardAPI: {items: [{path: ..a, fieldRef: {fieldPath: metadata.name}}]}'),
      /path: must not start with \.\./,
    ],
    [
      'with two files at one path',
      withVolume(
        'projected: {sources: [{downwardAPI: {items: [{path: a, fieldRef: {fieldPath: metadata.name}}]}}, {downwardAPI: {items: [{path: a, fieldRef: {fieldPath: metadata.uid}}]}}]}',
      ),
      /sources\[1\]\.downwardAPI\.items\[0\]\.path: must not repeat/,
    ],
    ['with a DNS policy nobody knows', whole('dnsPolicy: Foo'), /dnsPolicy: must be one of/],
    ['with DNS of its own and none given', whole('dnsPolicy: None'), /dnsConfig\.nameservers: must be set/],
    [
      'with four name servers',
      whole('dnsConfig: {nameservers: [1.1.1.1, 1.1.1.2, 1.1.1.3, 1.1.1.4]}'),
      /nameservers: must be at most 3/,
    ],
    [
      'with a name for an address',
      whole('hostAliases: [{ip: localhost}]'),
      /hostAliases\[0\]\.ip: must be an IP address/,
    ],
    ['with a bad host name', whole('hostname: A.b'), /^spec\.hostname: must consist/],
    [
      'with a name over the name of the node',
      whole('hostNetwork: true, hostnameOverride: a'),
      /hostnameOverride: must not be set while hostNetwork/,
    ],
    [
      'with a toleration of no key',
      whole('tolerations: [{value: a}]'),
      /operator: must be Exists without a key/,
    ],
    [
      'with a toleration that compares',
      whole('tolerations: [{key: a, operator: Lt, value: "1"}]'),
      /operator: must be one of Equal, Exists/,
    ],
    [
      'with a toleration for a while of no eviction',
      whole('tolerations: [{operator: Exists, tolerationSeconds: 1}]'),
      /effect: must be NoExecute/,
    ],
    ['with a bad node selector', whole('nodeSelector: {"a b": c}'), /nodeSelector\[a b\]: must have a key/],
    [
      'with affinity to no node',
      whole(
        'affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: []}}}',
      ),
      /nodeSelectorTerms: must have at least one/,
    ],
    [
      'with a weight of nothing',
      whole(
        'affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 0, preference: {}}]}}',
      ),
      /weight: must be between 1 and 100/,
    ],
    [
      'with scheduling gates',
      whole('schedulingGates: [{name: a}]'),
      /schedulingGates: must not be set on a pod that has a node/,
    ],
    [
      'with a spread of no skew',
      whole('topologySpreadConstraints: [{maxSkew: 0, topologyKey: a, whenUnsatisfiable: ScheduleAnyway}]'),
      /maxSkew: must be 1 or more/,
    ],
    [
      'with a deadline of nothing',
      whole('activeDeadlineSeconds: 0'),
      /activeDeadlineSeconds: must be between 1/,
    ],
    [
      'with ephemeral containers',
      whole('ephemeralContainers: [{name: e, image: x}]'),
      /ephemeralContainers: must not be set on a new pod/,
    ],
    ['for a system nobody runs', whole('os: {name: plan9}'), /os\.name: must be one of linux, windows/],
    [
      'for Windows with a user of Linux',
      `os: {name: windows}, ${one('securityContext: {runAsUser: 1}')}`,
      /runAsUser: must not be set for a Windows pod/,
    ],
    [
      'with a variable from a file on the node',
      `containers: [{${box}, env: [{name: A, valueFrom: {fileKeyRef: {volumeName: v, path: a, key: K}}}]}], volumes: [{name: v, hostPath: {path: /a}}]`,
      /volumeName: must name an emptyDir/,
    ],
  ];
  for (const [what, spec, expected] of bad)
    it(what, async () => {
      const told = await toldAbout(spec);
      assert.ok(
        told.some((text) => expected.test(text)),
        `${expected} is not among\n${told.join('\n')}`,
      );
    });
});

describe('the metadata of a pod is refused', () => {
  const bad: readonly (readonly [string, RegExp])[] = [
    ['name: a_b', /^metadata\.name: must consist/],
    [`name: ${'a'.repeat(250)}`, /^metadata\.name: .*at most 253/],
    ['name: a, namespace: A', /^metadata\.namespace: must consist/],
    ['name: a, uid: ../../etc', /^metadata\.uid: must be letters/],
    ['name: a, uid: ..', /^metadata\.uid: must be letters/],
    ['name: a, labels: {a: "b c"}', /^metadata\.labels\[a\]: must consist/],
    ['name: a, labels: {"/a": b}', /^metadata\.labels\[\/a\]: must have a key/],
    ['name: a, annotations: {"a b": c}', /^metadata\.annotations\[a b\]: must have a key/],
    ['name: a, ownerReferences: [{kind: A}]', /^metadata\.ownerReferences\[0\]\.uid: must be set/],
    ['name: a, finalizers: [orphan, foregroundDeletion]', /must not have both/],
    [
      'name: a, annotations: {controller.kubernetes.io/pod-deletion-cost: x}',
      /must be a whole number of 32 bits/,
    ],
    [
      'name: a, annotations: {container.apparmor.security.beta.kubernetes.io/nobody: unconfined}',
      /must end in the name of a container/,
    ],
    ['name: a, annotations: {seccomp.security.alpha.kubernetes.io/pod: x}', /must be runtime\/default/],
  ];
  for (const [metadata, expected] of bad)
    it(metadata.slice(0, 60), async () => {
      const told = await toldAbout(one(''), metadata);
      assert.ok(
        told.some((text) => expected.test(text)),
        `${expected} is not among\n${told.join('\n')}`,
      );
    });
});

describe('a static pod may not reference', () => {
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
      const told = await toldAbout(spec);
      assert.ok(
        told.some((text) => text.endsWith(`: static pods may not reference ${resource}`)),
        told.join('\n'),
      );
      assert.deepEqual(await toldAbout(spec, 'name: a', { ...defaultRules, apiReferences: 'allowed' }), []);
    });

  it('nothing but what can never work, with the gate off', async () => {
    const rules = { ...defaultRules, enabled: (gate: string) => gate !== 'PreventStaticPodAPIReferences' };
    assert.deepEqual(await toldAbout(withVolume('secret: {secretName: s}'), 'name: a', rules), []);
    assert.equal(
      (await toldAbout(whole('resourceClaims: [{name: c, resourceClaimName: d}]'), 'name: a', rules)).length,
      1,
    );
  });
});

test('all mistakes are told at once, in the order they stand in the text', async () => {
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

test('whatever a pod is made of, reading it answers and never throws', async () => {
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
      const { pods, problems, whole: sound } = await readManifestText(text);
      assert.equal(sound, pods.length === 1);
      assert.ok(sound || problems.some(({ severity }) => severity === 'error'));
    }),
  );
});

test('whatever the bytes of a manifest are, reading them answers and never throws', async () => {
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
