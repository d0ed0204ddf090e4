/** Go's name for a processor, as the labels of nodes have it. */
export function goArchitecture(nodeArchitecture: string): string {
  const names: Readonly<Record<string, string>> = { x64: 'amd64', ia32: '386', ppc64: 'ppc64le' };
  return names[nodeArchitecture] ?? nodeArchitecture;
}
