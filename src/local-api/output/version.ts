/** What `/version` answers; the names are what clients look for, whatever a server is made with. */
export interface VersionFacts {
  readonly major: string;
  readonly minor: string;
  /** The release whose behaviour it has, and the oldest one it can still be asked to have. */
  readonly emulationMajor: string;
  readonly emulationMinor: string;
  readonly minCompatibilityMajor: string;
  readonly minCompatibilityMinor: string;
  readonly gitVersion: string;
  readonly gitCommit: string;
  readonly gitTreeState: string;
  readonly buildDate: string;
  readonly goVersion: string;
  readonly compiler: string;
  readonly platform: string;
}

export interface VersionSources {
  /** The release of Kubernetes whose API this is, such as `v1.36.4`. */
  readonly kubernetes: string;
  readonly kubeling: string;
  /** As `process.version` has it. */
  readonly node: string;
  readonly platform: string;
  readonly arch: string;
}

export function versionFacts({ kubernetes, kubeling, node, platform, arch }: VersionSources): VersionFacts {
  const [major = '', minor = ''] = kubernetes.replace(/^v/, '').split('.');
  return {
    major,
    minor,
    emulationMajor: major,
    emulationMinor: minor,
    minCompatibilityMajor: major,
    minCompatibilityMinor: String(Number(minor) - 1),
    gitVersion: `${kubernetes}+kubeling.${kubeling}`,
    gitCommit: '',
    gitTreeState: '',
    buildDate: '1970-01-01T00:00:00Z',
    goVersion: `node-${node}`,
    compiler: 'v8',
    platform: `${platform}/${arch === 'x64' ? 'amd64' : arch}`,
  };
}
