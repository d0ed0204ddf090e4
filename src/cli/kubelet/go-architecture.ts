/** Go's name of a processor architecture, as used in node labels. */
export function goArchitecture(nodeArchitecture: string): string {
  const names: Readonly<Record<string, string>> = { x64: 'amd64', ia32: '386', ppc64: 'ppc64le' };
  return names[nodeArchitecture] ?? nodeArchitecture;
}
