/** Where a manifest lies, which is part of who its pod is. */
export interface ManifestOrigin {
  readonly source: 'file' | 'http';
  /** The path of the file, or the URL. */
  readonly path: string;
  readonly nodeName: string;
}
