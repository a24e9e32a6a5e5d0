package pydelta.peer;

import io.delta.storage.HDFSLogStore;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.Iterator;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;

/**
 * delta-spark's log store for local files, made safe among processes. The original checks whether a version is taken and then
 * renames, which may replace a commit that another process made in between; a link fails if its name is taken.
 */
public final class LinkingLogStore extends HDFSLogStore {
    public LinkingLogStore(Configuration configuration) {
        super(configuration);
    }

    @Override
    public void write(Path path, Iterator<String> actions, Boolean overwrite, Configuration configuration) throws IOException {
        if (overwrite) {
            super.write(path, actions, overwrite, configuration);
            return;
        }
        java.nio.file.Path commit = Paths.get(path.toUri().getPath());
        java.nio.file.Path written = commit.resolveSibling("." + commit.getFileName() + "." + UUID.randomUUID() + ".tmp");
        try {
            Files.write(written, (Iterable<String>) () -> actions);
            Files.createLink(commit, written);
        } finally {
            Files.deleteIfExists(written);
        }
    }
}
