/** A manifest with a mistake, and the expected message. */
export interface BadManifest {
  readonly file: string;
  readonly content: string | Uint8Array;
  /** The expected message in the log, without the path of the file. */
  readonly told: RegExp;
}

const tooLarge = 11 << 20;

/**
 * Returns one manifest with each common kind of mistake. `image` is an existing image, for the
 * manifests whose pod runs despite the mistake.
 */
export function badManifests(image: string): readonly BadManifest[] {
  const spec = `spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: ${image}
    command: [sleep, "1000"]
`;
  const pod = (name: string) => `apiVersion: v1\nkind: Pod\nmetadata:\n  name: ${name}\n${spec}`;
  return [
    { file: 'empty.yaml', content: '', told: /^: .*empty/ },
    { file: 'binary.yaml', content: Uint8Array.of(0x7f, 0x45, 0x4c, 0x46, 0, 0xff, 0xfe), told: /^: .*text/ },
    {
      file: 'large.yaml',
      content: Buffer.alloc(tooLarge, '#'),
      told: /^: must be smaller than 10485760 bytes/,
    },
    {
      file: 'kind.yaml',
      content: 'apiVersion: v1\nkind: Service\nmetadata:\n  name: web\n',
      told: /^:2:1: kind: must be Pod: current value is "Service"/,
    },
    {
      file: 'nameless.yaml',
      content: `apiVersion: v1\nkind: Pod\nmetadata:\n  labels: {}\n${spec}`,
      told: /^:\d+:\d+: metadata\.name: must be set/,
    },
    {
      file: 'tabs.yaml',
      content: 'apiVersion: v1\nkind: Pod\nmetadata:\n\tname: tabs\n',
      told: /^:4:\d+: .*tab/i,
    },
    {
      file: 'unknown.yaml',
      content: pod('unknown').replace('    command:', '    comand: x\n    command:'),
      told: /^:10:\d+: spec\.containers\[0\]\.comand: /,
    },
    { file: 'first.yaml', content: pod('twice'), told: /^$/ },
    {
      file: 'second.yaml',
      content: pod('twice'),
      told: /^:\d+:\d+: metadata\.name: must be unique: .*first\.yaml/,
    },
    { file: 'half.yaml', content: pod('half').slice(0, 100), told: /^:\d+:\d+: / },
  ];
}

/**
 * Names of pods that run although their manifest has a mistake, or although another manifest with
 * the same pod name has a mistake.
 */
export const usedAllTheSame = ['unknown', 'twice'];
