/** Where a manifest lies, which is part of who its pod is. */
export interface ManifestPlace {
  readonly source: 'file' | 'http';
  /** The path of the file, or the URL. */
  readonly path: string;
  readonly nodeName: string;
}
